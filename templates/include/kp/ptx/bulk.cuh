// Bulk copies (TMA without a tensor map) of byte ranges: to global memory, in bulk groups of the
// issuing thread, or to another CTA's distributed shared memory (DSMEM). PTX ISA, "cp.async.bulk",
// "cp.async.bulk.wait_group". Addresses and sizes are multiples of 16 bytes.
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Shared memory written by threads needs `fence_proxy_async_shared` first.
__device__ __forceinline__ void bulk_store(void* to, uint32_t shared, uint32_t bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(shared), "r"(bytes)
                 : "memory");
}

// To a CTA of the cluster. That CTA's mbarrier counts the bytes; `map_shared` gives both addresses.
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

// Wait until this thread's stores have read shared memory: it may be overwritten, or the CTA exit.
__device__ __forceinline__ void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

}  // namespace kp::ptx
