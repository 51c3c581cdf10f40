// Whose thread multiplies: the even CTA's of a pair, for both; or that of a CTA alone.
#pragma once
#include <cuda/std/cstdint>
#include <kp/ptx/cluster.cuh>
#include <kp/ptx/mbarrier.cuh>
#include <kp/ptx/shared.cuh>
#include <kp/ptx/tcgen05.cuh>
#include <kp/ring.cuh>

namespace kp::mla {

// The address of the multiplying CTA's barrier.
template <uint32_t CTAS>
__device__ __forceinline__ uint32_t of_multiplier(const uint64_t& barrier) {
    const uint32_t own = ptx::shared_address(&barrier);
    return CTAS == 1 ? own : ptx::map_shared(own, 0);
}

// Say that this thread, and the lanes it synced with, no longer read what the multiplier
// overwrites.
template <uint32_t CTAS>
__device__ __forceinline__ void release_to_multiplier(const uint64_t& barrier) {
    if constexpr (CTAS == 1) {
        ptx::mbarrier_arrive(ptx::shared_address(&barrier));
    } else {
        ptx::mbarrier_arrive_cluster(of_multiplier<CTAS>(barrier));
    }
}

// Say that what they wrote is there: in a pair, for another CTA's instructions. Costs a fence to
// L2.
template <uint32_t CTAS>
__device__ __forceinline__ void publish_to_multiplier(const uint64_t& barrier) {
    if constexpr (CTAS == 1) {
        ptx::mbarrier_arrive(ptx::shared_address(&barrier));
    } else {
        ptx::mbarrier_arrive_release_cluster(of_multiplier<CTAS>(barrier));
    }
}

// One thread of the odd CTA: publish what its warps wrote block after block, as `written` says in
// turns, so that they need not wait for the fence.
template <uint32_t CTAS, uint32_t STAGES>
__device__ __forceinline__ void relay(const uint64_t (&written)[STAGES],
                                      const uint64_t (&full)[STAGES], uint32_t blocks) {
    Ring<STAGES> ring;
    for (uint32_t block = 0; block < blocks; ++block) {
        ptx::mbarrier_wait(ptx::shared_address(&written[ring.stage]), ring.phase);
        ptx::tcgen05_fence_after();
        ptx::tcgen05_fence_before();
        publish_to_multiplier<CTAS>(full[ring.stage]);
        ring.advance();
    }
}

// The multiplying thread waits for what was published.
template <uint32_t CTAS>
__device__ __forceinline__ void wait_for_published(const uint64_t& barrier, uint32_t phase) {
    constexpr ptx::Scope SCOPE = CTAS == 1 ? ptx::Scope::cta : ptx::Scope::cluster;
    ptx::mbarrier_wait<SCOPE>(ptx::shared_address(&barrier), phase);
    ptx::tcgen05_fence_after();
}

// It waits for what every CTA gathers, `bytes` each; they may have come before they are expected.
template <uint32_t CTAS>
__device__ __forceinline__ void wait_for_bytes(const uint64_t& barrier, uint32_t bytes,
                                               uint32_t phase) {
    ptx::mbarrier_arrive_expect_tx(ptx::shared_address(&barrier), CTAS * bytes);
    ptx::mbarrier_wait(ptx::shared_address(&barrier), phase);
    ptx::tcgen05_fence_after();
}

// One arrival on `barrier` in every CTA once all it issued before is done.
template <uint32_t CTAS>
__device__ __forceinline__ void commit(const uint64_t& barrier) {
    if constexpr (CTAS == 1) {
        ptx::mma_commit(ptx::shared_address(&barrier));
    } else {
        ptx::mma_commit_multicast<CTAS>(ptx::shared_address(&barrier), (1 << CTAS) - 1);
    }
}

}  // namespace kp::mla
