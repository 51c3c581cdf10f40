// The sum of partial results that the CTAs of a cluster hold, for kernels that split K.
//
// Thread t of every CTA holds the same elements of the tile, as VECTORS vectors of four fp32. Each
// CTA owns `share` consecutive vectors of every thread: the others store their parts of them into
// its shared memory, counted by its barrier, and it adds them in order of rank, so that the sum is
// the same in every run. Nothing is zeroed and nothing is atomic.
//
//   buffer of an owner: [split - 1 sources][share][THREADS] vectors
//   received: 1 arrival and the bytes of all sources -> the owner may add
//   drained: 1 arrival of every other owner, when it comes to the next tile -> it may be sent parts
//
// With few vectors some CTAs own none. They receive nothing, so nothing keeps them from running a
// tile ahead; an arrival of theirs could end a phase of `drained` that slower CTAs still wait for.
#pragma once
#include <kp/ptx/barrier.cuh>
#include <kp/ptx/cluster.cuh>
#include <kp/ptx/mbarrier.cuh>
#include <kp/ptx/shared.cuh>

namespace kp {

//
// MOST: the CTAs of the widest split, where that is 2; all is known then but which of the two it
// is.
template <uint32_t VECTORS, uint32_t THREADS, uint32_t WARPS, uint32_t MOST = 0>
class SplitSum {
  public:
    // This is CTA `rank` of `split`; CTA r of them has rank `first_rank + r` in the cluster.
    __device__ __forceinline__ SplitSum(uint32_t buffer, uint32_t received, uint32_t drained,
                                        uint32_t split, uint32_t rank, uint32_t first_rank)
        : buffer(buffer), received(received), drained(drained), split(split), rank(rank),
          first_rank(first_rank), share((VECTORS + split - 1) / split) {}

    // By one thread, before any other use. A sum of one part needs no barriers.
    __device__ __forceinline__ void init() const {
        if (split == 1) return;
        ptx::mbarrier_init(received, 1);
        ptx::mbarrier_init(drained, max(other_owners(), 1u));
    }

    // What the buffer takes in a split of at most `most` CTAs.
    static constexpr uint32_t bytes(uint32_t most) {
        uint32_t vectors = 0;
        for (uint32_t n = 2; n <= most; ++n) {
            const uint32_t of_all_sources = (n - 1) * ((VECTORS + n - 1) / n);
            vectors = of_all_sources > vectors ? of_all_sources : vectors;
        }
        return vectors * STEP_BYTES;
    }

    // Vector v of every thread is this CTA's: after `sum` it holds the sum.
    __device__ __forceinline__ bool owns(uint32_t v) const { return owned_by(rank, v); }

    // Add the parts of all CTAs into the vectors this CTA owns. All threads of the WARPS warps
    // call; `thread` < `threads` <= THREADS hold parts, the same ones in every CTA. Only they wait
    // on the barriers: no phase ends without them, so none can be missed: an owner comes to the
    // next tile when it has the parts of every thread of this one. Nothing arrives here after the
    // last call, so this CTA may end before the others.
    __device__ __forceinline__ void sum(float (&values)[4 * VECTORS], uint32_t thread,
                                        uint32_t threads) {
        if (split == 1 || threads == 0) return;
        if (used) release(thread);
        if (thread == 0) ptx::mbarrier_arrive_expect_tx(received, expected_bytes(threads));
        if (thread < threads) {
            if (HAS_OTHERS || rank != 0) ptx::mbarrier_wait(drained, phase ^ 1);
            if (MOST != 2) {
                send(values, thread);
                await_parts();
                add(values, thread);
            } else if (rank == 0) {
                exchange<0>(values, thread);
            } else {
                exchange<HALF>(values, thread);
            }
        }
        phase ^= 1;
        used = true;
    }

  private:
    static constexpr uint32_t BARRIER = 1;  // the CTA barrier of the WARPS warps
    static constexpr uint32_t VECTOR_BYTES = 16;
    static constexpr uint32_t STEP_BYTES = THREADS * VECTOR_BYTES;  // from a vector to the next
    static constexpr uint32_t HALF = (VECTORS + 1) / 2;
    static constexpr bool HAS_OTHERS = VECTORS > 1;  // at least two CTAs of a split own some

    __device__ __forceinline__ bool owns_any() const { return rank * share < VECTORS; }

    __device__ __forceinline__ uint32_t other_owners() const {
        return (VECTORS + share - 1) / share - owns_any();
    }

    __device__ __forceinline__ bool owned_by(uint32_t owner, uint32_t v) const {
        return v - owner * share < share;
    }

    __device__ __forceinline__ uint32_t expected_bytes(uint32_t threads) const {
        const uint32_t first = min(rank * share, VECTORS), end = min(first + share, VECTORS);
        return (split - 1) * (end - first) * threads * VECTOR_BYTES;
    }

    // Where source number `source` of an owner puts vector 0, if the owner owned it.
    __device__ __forceinline__ uint32_t place(uint32_t owner, uint32_t source,
                                              uint32_t thread) const {
        return buffer + (source * share - owner * share) * STEP_BYTES + thread * VECTOR_BYTES;
    }

    __device__ __forceinline__ void await_parts() const {
        ptx::mbarrier_wait<ptx::Scope::cluster>(received, phase);
    }

    // What `send` and `add` do, for the one of two CTAs that owns the half from vector FIRST.
    template <uint32_t FIRST>
    __device__ __forceinline__ void exchange(float (&values)[4 * VECTORS], uint32_t thread) const {
        constexpr uint32_t OTHER = HALF - FIRST;  // the first vector of the other half
        const uint32_t here = buffer + thread * VECTOR_BYTES, other = first_rank + (FIRST == 0);
        const uint32_t there = ptx::map_shared(here, other);
        const uint32_t barrier = ptx::map_shared(received, other);
#pragma unroll
        for (uint32_t v = 0; v < HALF && OTHER + v < VECTORS; ++v) {
            const float* x = &values[4 * (OTHER + v)];
            ptx::store_async(there + v * STEP_BYTES, make_float4(x[0], x[1], x[2], x[3]), barrier);
        }
        await_parts();
#pragma unroll
        for (uint32_t v = 0; v < HALF && FIRST + v < VECTORS; ++v) {
            const float4 part = ptx::load_shared(here + v * STEP_BYTES);
            float* x = &values[4 * (FIRST + v)];
            x[0] += part.x;
            x[1] += part.y;
            x[2] += part.z;
            x[3] += part.w;
        }
    }

    __device__ __forceinline__ void send(const float (&values)[4 * VECTORS],
                                         uint32_t thread) const {
        for (uint32_t owner = 0; owner < split; ++owner) {
            if (owner == rank) continue;
            const uint32_t source = rank - (rank > owner);
            const uint32_t to =
                ptx::map_shared(buffer, first_rank + owner) - buffer + place(owner, source, thread);
            const uint32_t barrier = ptx::map_shared(received, first_rank + owner);
#pragma unroll
            for (uint32_t v = 0; v < VECTORS; ++v) {
                const float* x = &values[4 * v];
                if (owned_by(owner, v)) {
                    ptx::store_async(to + v * STEP_BYTES, make_float4(x[0], x[1], x[2], x[3]),
                                     barrier);
                }
            }
        }
    }

    __device__ __forceinline__ void add(float (&values)[4 * VECTORS], uint32_t thread) const {
        for (uint32_t source = 0; source < split - 1; ++source) {
            const uint32_t from = place(rank, source, thread);
#pragma unroll
            for (uint32_t v = 0; v < VECTORS; ++v) {
                if (!owns(v)) continue;
                const float4 part = ptx::load_shared(from + v * STEP_BYTES);
                values[4 * v + 0] += part.x;
                values[4 * v + 1] += part.y;
                values[4 * v + 2] += part.z;
                values[4 * v + 3] += part.w;
            }
        }
    }

    // All warps have read the parts of the last tile: lane r of an owner's warp says so to CTA r.
    __device__ __forceinline__ void release(uint32_t thread) const {
        ptx::barrier_sync(BARRIER, 32 * WARPS);
        if (owns_any() && thread < split && thread != rank) {
            ptx::mbarrier_arrive_cluster(ptx::map_shared(drained, first_rank + thread));
        }
    }

    uint32_t buffer, received, drained;
    uint32_t split, rank, first_rank;
    uint32_t share;
    uint32_t phase = 0;
    bool used = false;  // the buffer, by a tile before
};

}  // namespace kp
