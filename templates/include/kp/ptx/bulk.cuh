// Copies of ranges of bytes by the bulk engine, in groups of the thread that issues them.
// PTX ISA, "cp.async.bulk", "cp.async.bulk.wait_group". Addresses and sizes: multiples of 16 bytes.
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Shared memory written by threads needs `fence_proxy_async_shared` first.
__device__ __forceinline__ void bulk_store(void* to, uint32_t shared, uint32_t bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(shared), "r"(bytes)
                 : "memory");
}

// To a CTA of the cluster, a barrier of which counts the bytes; both addresses are of `map_shared`.
__device__ __forceinline__ void bulk_send(uint32_t to, uint32_t shared, uint32_t bytes,
                                          uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(to),
        "r"(shared), "r"(bytes), "r"(barrier)
        : "memory");
}

__device__ __forceinline__ void bulk_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Every store of this thread has read its shared memory, which may be written again, or end.
__device__ __forceinline__ void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

}  // namespace kp::ptx
