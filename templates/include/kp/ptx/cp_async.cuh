// Copies of 16 bytes or 4 a thread from global to shared memory. PTX ISA, "cp.async".
// They write as the thread would: a tensor core that reads them needs `fence_proxy_async_shared`
// by a thread that has waited for them.
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Of the 16 bytes the first `bytes` come from memory, the rest are zeros; of 0 nothing is read.
__device__ __forceinline__ void cp_async(uint32_t shared, const void* from, uint32_t bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(from),
                 "r"(bytes)
                 : "memory");
}

// Of four bytes all or none; they may come from this multiprocessor's L1.
__device__ __forceinline__ void cp_async_word(uint32_t shared, const void* from, bool exists) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(from),
                 "r"(exists ? 4u : 0u)
                 : "memory");
}

// Arrive when all copies of this thread until now are done; the barrier counts it like any other.
__device__ __forceinline__ void cp_async_arrive(uint32_t barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

}  // namespace kp::ptx
