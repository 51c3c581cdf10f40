// What all lanes of a warp agree on, said so that the compiler knows it. PTX ISA, "shfl.sync".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Lane 0's value, in a uniform register: descriptors of the tensor core and of TMA live there.
__device__ __forceinline__ uint32_t uniform(uint32_t value) {
    return __shfl_sync(0xffffffff, value, 0);
}

}  // namespace kp::ptx
