// Loads of global memory that the first-level cache takes no part in. PTX ISA, "ld.relaxed".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

__device__ __forceinline__ uint32_t load_relaxed(const uint32_t* from) {
    uint32_t v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
    return v;
}

}  // namespace kp::ptx
