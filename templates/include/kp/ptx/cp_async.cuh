// Asynchronous copies (cp.async) of 16 or 4 bytes a thread from global to shared memory. PTX ISA,
// "cp.async". They write through the generic proxy: before a tensor core reads the data, a thread
// that has waited for it must call `fence_proxy_async_shared`.
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// The first `bytes` of the 16 come from memory, the rest are zeros. With 0 nothing is read.
__device__ __forceinline__ void cp_async(uint32_t shared, const void* from, uint32_t bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(from),
                 "r"(bytes)
                 : "memory");
}

// Four bytes, or zeros. They may come from this multiprocessor's L1.
__device__ __forceinline__ void cp_async_word(uint32_t shared, const void* from, bool exists) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(from),
                 "r"(exists ? 4u : 0u)
                 : "memory");
}

// Arrive once all earlier copies of this thread are done. It counts as one of the arrivals of
// `init`.
__device__ __forceinline__ void cp_async_arrive(uint32_t barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

}  // namespace kp::ptx
