// Loads of global memory that bypass L1. PTX ISA, "ld.relaxed", "ld".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

__device__ __forceinline__ uint32_t load_relaxed(const uint32_t* from) {
    uint32_t v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
    return v;
}

// 16 bytes that are read once. The compiler does not move the load past later barriers.
__device__ __forceinline__ uint4 load_once(const void* from) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

}  // namespace kp::ptx
