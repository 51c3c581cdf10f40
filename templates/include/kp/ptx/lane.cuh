// The lane of a warp. PTX ISA, "%laneid".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Read anew at each call: what follows from it stays in no register meanwhile.
__device__ __forceinline__ uint32_t lane() {
    uint32_t lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

}  // namespace kp::ptx
