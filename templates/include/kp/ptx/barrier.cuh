// Named barriers of a CTA, sixteen of them; number 0 is __syncthreads'. PTX ISA, "barrier.cta".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Wait until `threads` threads, whole warps, have arrived. All see what each of them wrote.
__device__ __forceinline__ void barrier_sync(uint32_t barrier, uint32_t threads) {
    asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// The same for warps that arrive by different instructions, such as one per warpgroup. The machine
// code equals that of the aligned form; only synccheck reports such warps there as divergent.
__device__ __forceinline__ void barrier_sync_unaligned(uint32_t barrier, uint32_t threads) {
    asm volatile("barrier.cta.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// The same; returns whether the condition holds for any of the threads.
__device__ __forceinline__ bool barrier_any(uint32_t barrier, uint32_t threads, bool condition) {
    uint32_t any;
    asm volatile(
        "{\n"
        ".reg .pred mine, all;\n"
        "setp.ne.u32 mine, %3, 0;\n"
        "barrier.cta.red.or.pred.aligned all, %1, %2, mine;\n"
        "selp.b32 %0, 1, 0, all;\n"
        "}"
        : "=r"(any)
        : "r"(barrier), "r"(threads), "r"(uint32_t(condition))
        : "memory");
    return any != 0;
}

}  // namespace kp::ptx
