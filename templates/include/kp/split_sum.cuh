// The sum of partial results that the CTAs of a cluster hold, for kernels that split K.
//
// Thread t of every CTA holds the same elements of the tile, as BLOCKS vectors of four fp32. Vector
// b belongs to CTA b % split: every other CTA stores its part of it into the owner's shared memory,
// counted by the owner's barrier, and the owner adds the parts in order of rank, so that the sum
// is the same in every run. Nothing is zeroed and nothing is atomic.
//
//   buffer of an owner: [split - 1 sources][ceil(BLOCKS / split) vectors][THREADS] of 16 bytes
//   received: 1 arrival and the bytes of all sources      -> the owner may add
//   drained:  one arrival of every warp of every other CTA -> its owners may be sent the next tile
#pragma once
#include <kp/ptx/cluster.cuh>
#include <kp/ptx/mbarrier.cuh>
#include <kp/ptx/shared.cuh>

namespace kp {

template <uint32_t BLOCKS, uint32_t THREADS, uint32_t WARPS>
class SplitSum {
  public:
    // `rank` among the `split` CTAs; CTA r of them has rank `first_rank + r` in the cluster.
    __device__ __forceinline__ SplitSum(uint32_t buffer, uint32_t received, uint32_t drained,
                                        uint32_t split, uint32_t rank, uint32_t first_rank)
        : buffer(buffer), received(received), drained(drained), split(split), rank(rank),
          first_rank(first_rank) {}

    // By one thread, before any other use.
    __device__ __forceinline__ void init() const {
        ptx::mbarrier_init(received, 1);
        ptx::mbarrier_init(drained, (split - 1) * WARPS);
    }

    // Call visit(b, slot) for every vector b this CTA owns; it is the slot-th of them.
    template <typename Visit>
    __device__ __forceinline__ void for_each_owned(Visit visit) const {
        uint32_t owner = 0, slot = 0;
#pragma unroll
        for (uint32_t b = 0; b < BLOCKS; ++b) {
            if (owner == rank) visit(b, slot);
            if (++owner == split) owner = 0, ++slot;
        }
    }

    // Add the parts of all CTAs into the vectors this CTA owns. All threads of WARPS warps call;
    // `thread` < `threads` <= THREADS are those that hold a part, the same in every CTA.
    __device__ __forceinline__ void sum(float (&values)[4 * BLOCKS], uint32_t thread,
                                        uint32_t threads) {
        if (split == 1) return;
        if (thread == 0) ptx::mbarrier_arrive_expect_tx(received, owned_bytes(threads));
        ptx::mbarrier_wait<ptx::Scope::cluster>(drained, phase ^ 1);
        if (thread < threads) send(values, thread);
        ptx::mbarrier_wait<ptx::Scope::cluster>(received, phase);
        if (thread < threads) add(values, thread);
        release();
        phase ^= 1;
    }

  private:
    __device__ __forceinline__ uint32_t slots() const { return (BLOCKS + split - 1) / split; }

    __device__ __forceinline__ uint32_t owned_bytes(uint32_t threads) const {
        const uint32_t owned = (BLOCKS + split - 1 - rank) / split;
        return (split - 1) * owned * threads * sizeof(float4);
    }

    __device__ __forceinline__ uint32_t place(uint32_t source, uint32_t slot,
                                              uint32_t thread) const {
        return buffer + ((source * slots() + slot) * THREADS + thread) * sizeof(float4);
    }

    __device__ __forceinline__ void send(const float (&values)[4 * BLOCKS], uint32_t thread) const {
        uint32_t owner = 0, slot = 0;
#pragma unroll
        for (uint32_t b = 0; b < BLOCKS; ++b) {
            if (owner != rank) {
                const float* v = &values[4 * b];
                const uint32_t to = first_rank + owner;
                const uint32_t source = rank - (rank > owner);
                ptx::store_async(ptx::map_shared(place(source, slot, thread), to),
                                 make_float4(v[0], v[1], v[2], v[3]),
                                 ptx::map_shared(received, to));
            }
            if (++owner == split) owner = 0, ++slot;
        }
    }

    __device__ __forceinline__ void add(float (&values)[4 * BLOCKS], uint32_t thread) const {
        for (uint32_t source = 0; source + 1 < split; ++source) {
            for_each_owned([&](uint32_t b, uint32_t slot) {
                const float4 part = ptx::load_shared(place(source, slot, thread));
                values[4 * b + 0] += part.x;
                values[4 * b + 1] += part.y;
                values[4 * b + 2] += part.z;
                values[4 * b + 3] += part.w;
            });
        }
    }

    // This warp has read its vectors: lane r says so to CTA r.
    __device__ __forceinline__ void release() const {
        __syncwarp();
        const uint32_t lane = threadIdx.x % 32;
        if (lane < split && lane != rank) {
            ptx::mbarrier_arrive_cluster(ptx::map_shared(drained, first_rank + lane));
        }
    }

    uint32_t buffer, received, drained;
    uint32_t split, rank, first_rank;
    uint32_t phase = 0;
};

}  // namespace kp
