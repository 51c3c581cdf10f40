// Barriers between the MMA warp and the other roles. In a pair (cta_group::2) the even CTA's MMA
// warp, the "multiplier", issues for both CTAs.
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

// Release: this thread, and the lanes it synced with, no longer read the data that the multiplier
// overwrites.
template <uint32_t CTAS>
__device__ __forceinline__ void release_to_multiplier(const uint64_t& barrier) {
    if constexpr (CTAS == 1) {
        ptx::mbarrier_arrive(ptx::shared_address(&barrier));
    } else {
        ptx::mbarrier_arrive_cluster(of_multiplier<CTAS>(barrier));
    }
}

// Publish: their writes are complete. In a pair another CTA's instructions read them, which costs a
// fence to L2.
template <uint32_t CTAS>
__device__ __forceinline__ void publish_to_multiplier(const uint64_t& barrier) {
    if constexpr (CTAS == 1) {
        ptx::mbarrier_arrive(ptx::shared_address(&barrier));
    } else {
        ptx::mbarrier_arrive_release_cluster(of_multiplier<CTAS>(barrier));
    }
}

// One thread of the odd CTA publishes its warps' writes, block after block as `written` completes,
// so that these warps do not wait for the fence.
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

// The multiplier waits for published data.
template <uint32_t CTAS>
__device__ __forceinline__ void wait_for_published(const uint64_t& barrier, uint32_t phase) {
    constexpr ptx::Scope SCOPE = CTAS == 1 ? ptx::Scope::cta : ptx::Scope::cluster;
    ptx::mbarrier_wait<SCOPE>(ptx::shared_address(&barrier), phase);
    ptx::tcgen05_fence_after();
}

// It waits for the gathers of every CTA, `bytes` each. Bytes may arrive before they are expected.
template <uint32_t CTAS>
__device__ __forceinline__ void wait_for_bytes(const uint64_t& barrier, uint32_t bytes,
                                               uint32_t phase) {
    ptx::mbarrier_arrive_expect_tx(ptx::shared_address(&barrier), CTAS * bytes);
    ptx::mbarrier_wait(ptx::shared_address(&barrier), phase);
    ptx::tcgen05_fence_after();
}

// One arrival on `barrier` in every CTA once all earlier MMAs are done.
template <uint32_t CTAS>
__device__ __forceinline__ void commit(const uint64_t& barrier) {
    if constexpr (CTAS == 1) {
        ptx::mma_commit(ptx::shared_address(&barrier));
    } else {
        ptx::mma_commit_multicast<CTAS>(ptx::shared_address(&barrier), (1 << CTAS) - 1);
    }
}

}  // namespace kp::mla
