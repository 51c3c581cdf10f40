// The lane number within a warp. PTX ISA, "%laneid".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Read again at each call, so that values computed from it occupy no register in between.
__device__ __forceinline__ uint32_t lane() {
    uint32_t lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

}  // namespace kp::ptx
