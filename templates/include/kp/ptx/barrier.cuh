// The sixteen barriers of a CTA; 0 is __syncthreads'. PTX ISA, "barrier.cta".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Wait until `threads` threads of whole warps are here; what each wrote, all see.
__device__ __forceinline__ void barrier_sync(uint32_t barrier, uint32_t threads) {
    asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

}  // namespace kp::ptx
