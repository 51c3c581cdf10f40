// Warp-uniform values, marked so that the compiler knows it. PTX ISA, "shfl.sync".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Lane 0's value, in a uniform register, where descriptors of wgmma and TMA must be.
__device__ __forceinline__ uint32_t uniform(uint32_t value) {
    return __shfl_sync(0xffffffff, value, 0);
}

}  // namespace kp::ptx
