// Global memory past the first-level cache. PTX ISA, "ld.relaxed", "prefetch".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

__device__ __forceinline__ uint32_t load_relaxed(const uint32_t* from) {
    uint32_t v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
    return v;
}

// Bring the line of this address into L2: a hint, allowed before the value may be read.
__device__ __forceinline__ void prefetch_l2(const void* at) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at) : "memory");
}

}  // namespace kp::ptx
