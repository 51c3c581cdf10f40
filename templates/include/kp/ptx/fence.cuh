// Proxy fences, and the fence for fresh mbarriers. PTX ISA, "membar / fence".
#pragma once

namespace kp::ptx {

// The cluster and the async proxy see the mbarriers that this thread initialised.
__device__ __forceinline__ void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Orders ordinary accesses of shared memory (generic proxy) with those of TMA and the tensor cores
// (async proxy).
__device__ __forceinline__ void fence_proxy_async_shared() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace kp::ptx
