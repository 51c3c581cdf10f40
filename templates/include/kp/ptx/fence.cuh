// Fences between proxies and for fresh barriers. PTX ISA, "membar / fence".
#pragma once

namespace kp::ptx {

// Barriers this thread initialised are seen by the cluster and by the async proxy.
__device__ __forceinline__ void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Ordinary accesses of shared memory on one side, TMA and tensor cores on the other.
__device__ __forceinline__ void fence_proxy_async_shared() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace kp::ptx
