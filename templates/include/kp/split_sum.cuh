// Split-K reduction through distributed shared memory (DSMEM): it sums the partial results
// ("parts") that the CTAs of a cluster hold. It is deterministic: no atomics, no workspace.
//
// Thread t of every CTA holds the same elements of the tile, as VECTORS vectors of four fp32. Each
// CTA owns `share` consecutive vectors of every thread. The other CTAs store their parts of these
// into the owner's shared memory (st.async), and the owner's mbarrier counts the bytes. The owner
// adds them in order of rank, so that every run gives the same sum.
//
//   buffer of an owner: [split - 1 sources][share][THREADS] vectors
//   received: 1 arrival and the bytes of all sources -> the owner may add
//   drained: 1 arrival of every other owner at its next tile -> others may send it parts
//
// With few vectors some CTAs own none. They receive nothing, so they may run a tile ahead. If they
// arrived too, they could end a phase of `drained` that slower CTAs still wait for.
#pragma once
#include <kp/ptx/barrier.cuh>
#include <kp/ptx/cluster.cuh>
#include <kp/ptx/mbarrier.cuh>
#include <kp/ptx/shared.cuh>

namespace kp {

// MOST: the widest split if that is 2, else 0. With 2, only the rank is unknown at compile time.
template <uint32_t VECTORS, uint32_t THREADS, uint32_t WARPS, uint32_t MOST = 0>
class SplitSum {
  public:
    // This is CTA `rank` of `split`; CTA r of them has rank `first_rank + r` in the cluster.
    __device__ __forceinline__ SplitSum(uint32_t buffer, uint32_t received, uint32_t drained,
                                        uint32_t split, uint32_t rank, uint32_t first_rank)
        : buffer(buffer), received(received), drained(drained), split(split), rank(rank),
          first_rank(first_rank), share((VECTORS + split - 1) / split) {}

    // One thread calls it before any other use. A split of 1 needs no barriers.
    __device__ __forceinline__ void init() const {
        if (split == 1) return;
        ptx::mbarrier_init(received, 1);
        ptx::mbarrier_init(drained, max(other_owners(), 1u));
    }

    // The buffer's size for splits of at most `most` CTAs.
    static constexpr uint32_t bytes(uint32_t most) {
        uint32_t vectors = 0;
        for (uint32_t n = 2; n <= most; ++n) {
            const uint32_t of_all_sources = (n - 1) * ((VECTORS + n - 1) / n);
            vectors = of_all_sources > vectors ? of_all_sources : vectors;
        }
        return vectors * STEP_BYTES;
    }

    // Whether this CTA owns vector v of every thread: after `sum` it holds the sum.
    __device__ __forceinline__ bool owns(uint32_t v) const { return owned_by(rank, v); }

    // Add the parts of all CTAs into the vectors that this CTA owns. All threads of the WARPS warps
    // call. Those with `thread` < `threads` <= THREADS hold parts, the same threads in every CTA.
    // Only those threads wait on the barriers, so no phase can pass them by: an owner reaches its
    // next tile only after it has the parts of every thread. No arrival targets this CTA after its
    // last call, so it may exit early.
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
    static constexpr uint32_t STEP_BYTES = THREADS * VECTOR_BYTES;  // from one vector to the next
    static constexpr uint32_t HALF = (VECTORS + 1) / 2;
    static constexpr bool HAS_OTHERS = VECTORS > 1;  // at least two CTAs of a split own vectors

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

    // The address at which source number `source` would store vector 0 in an owner's buffer.
    __device__ __forceinline__ uint32_t place(uint32_t owner, uint32_t source,
                                              uint32_t thread) const {
        return buffer + (source * share - owner * share) * STEP_BYTES + thread * VECTOR_BYTES;
    }

    __device__ __forceinline__ void await_parts() const {
        ptx::mbarrier_wait<ptx::Scope::cluster>(received, phase);
    }

    // `send` and `add` for a split of two: this CTA owns the half that begins at vector FIRST.
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

    // All warps have read the parts of the last tile. Thread r of an owner releases CTA r.
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
    bool used = false;  // whether an earlier tile used the buffer
};

}  // namespace kp
