// S = Q K^T and online softmax of a tile, in registers: 64 heads by 64 keys. A thread has two rows,
// `lane / 4` of its warp's sixteen and eight further; s[4j + 2h + q] is column 8j + 2 (lane % 4) +
// q of row h.
using Scores = float[32];
using Weights = uint32_t[16];  // pairs of bf16, as A of four MMAs along the keys
constexpr uint32_t TILE_LAYOUT = ptx::wgmma_descriptor_high(8 * SPAN_BYTES);

// A wgmma fence takes longer than some MMAs, so one fence serves all parts that have arrived.
template <uint32_t tile>
struct Arrivals {
    Shared& shared;
    uint32_t used;  // tiles of this kind before
    bool are_all_seen = false;

    __device__ __forceinline__ uint64_t& full(uint32_t number) {
        return shared.full[tile][part_of(panel_at(tile, number))];
    }

    // Wait for the part that begins at a number.
    __device__ __forceinline__ void wait(uint32_t number) {
        if (are_all_seen) return;
        ptx::mbarrier_wait(at(full(number)), used % 2);
        are_all_seen = true;
#pragma unroll
        for (uint32_t later = number + 1; later < PANELS; ++later) {
            if (!begins_part(tile, later)) continue;
            are_all_seen &= ptx::mbarrier_test(at(full(later)), used % 2);
        }
        ptx::fence_proxy_async_shared();
    }
};

// Multiply Q by the panels of a tile from a number to another. The first part has been waited for.
template <uint32_t tile>
__device__ __forceinline__ void score(Scores& s, Arrivals<tile>& arrivals, const Places& places,
                                      uint32_t first = 0, uint32_t last = PANELS) {
#pragma unroll
    for (uint32_t number = first; number < last; ++number) {
        if (begins_part(tile, number)) {
            if (number > 0) arrivals.wait(number);
            ptx::wgmma_fence_operand(s);
            ptx::wgmma_fence();
        }
        const uint32_t panel = panel_at(tile, number);
        const uint32_t q = places.q(panel), k = places.k(tile, panel);
#pragma unroll
        for (uint32_t step = 0; step < STEPS; ++step) {
            multiply_scores<TILE_LAYOUT, TILE_LAYOUT>(s, q + (step * STEP_BYTES >> 4),
                                                      k + (step * STEP_BYTES >> 4),
                                                      number > 0 || step > 0);
        }
    }
    ptx::wgmma_commit();
}

// A thread's two rows of the softmax state. Three other threads have the same rows, but other sums.
using State = RunningSoftmax[2];

// How scores become weights. For most tiles the weights by the current maxima, and their sums,
// already show that the mask and the maxima need no work. All other cases are handled in one place,
// because skipped code costs time too.
struct Softmax {
    // The largest sum of a thread's sixteen weights of a row before the maximum must be raised:
    // bf16 is as precise there.
    static constexpr float MOST = 256;

    float scale;
    bool wants_highest;

    // A scale of 0 becomes the least positive number: masked keys must stay apart from others.
    __device__ __forceinline__ Softmax(uint32_t bits, bool wants_highest)
        : scale(__uint_as_float(bits)), wants_highest(wants_highest) {
        if (scale == 0) scale = 1.17549435e-38f;
    }

    // Weights by the current maxima, and their sums, one a row.
    __device__ __forceinline__ void weigh_by(Weights& p, float (&sums)[2], const Scores& s,
                                             const State& rows) const {
        sums[0] = sums[1] = 0;
#pragma unroll
        for (uint32_t i = 0; i < 16; ++i) {
            const float maximum = rows[i % 2].maximum;
            const float first = ptx::exp2_approx(fmaf(s[2 * i], scale, -maximum));
            const float second = ptx::exp2_approx(fmaf(s[2 * i + 1], scale, -maximum));
            sums[i % 2] += first + second;
            p[i] = ptx::pack_bf16(first, second);
        }
    }

    // Masked keys get a score without weight. The bits are in the order in which `gather` reads
    // entries.
    __device__ __forceinline__ void mask(Scores& s, uint2 counting) const {
        const float never = scale < 0 ? -mla::minus_infinity() : mla::minus_infinity();
        const uint32_t lane = threadIdx.x % 32, shift = lane % 4 / 2 * 16 + lane % 2 * 2;
        const uint32_t mine[2] = {counting.x >> shift, counting.y >> shift};
#pragma unroll
        for (uint32_t i = 0; i < 32; ++i) {
            const uint32_t block = i / 4, bit = block / 2 * 4 + i % 2;
            if ((mine[block % 2] >> bit & 1) == 0) s[i] = never;
        }
    }

    // The highest score of a row, in units of log2; four threads share a row.
    __device__ __forceinline__ float highest(const Scores& s, uint32_t h) const {
        float most = s[2 * h] * scale;
#pragma unroll
        for (uint32_t i = 1; i < 16; ++i) {
            most = fmaxf(most, s[i / 2 * 4 + 2 * h + i % 2] * scale);
        }
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 1));
        return fmaxf(most, __shfl_xor_sync(0xffffffff, most, 2));
    }

    // Update the highest scores, if the call wants them.
    __device__ __forceinline__ void note_highest(State& rows, const Scores& s) const {
        if (!wants_highest) return;
#pragma unroll
        for (uint32_t h = 0; h < 2; ++h) rows[h].highest = fmaxf(rows[h].highest, highest(s, h));
    }

    // Raise the maxima to the scores. Returns whether any row of this warp changed; earlier sums
    // must then be multiplied by `factors`.
    __device__ __forceinline__ bool follow(State& rows, const Scores& s,
                                           float (&factors)[2]) const {
        bool lags = false;
#pragma unroll
        for (uint32_t h = 0; h < 2; ++h) {
            const float score = highest(s, h);
            factors[h] = 1;
            if (!rows[h].is_behind(score)) continue;
            factors[h] = rows[h].rescale(score);
            lags = true;
        }
        return __any_sync(0xffffffff, lags);
    }

    // Weights from scores; their sums go to the rows. `rescale` multiplies earlier sums.
    template <typename Rescale>
    __device__ __forceinline__ void weigh(Weights& p, Scores& s, State& rows, uint2 counting,
                                          Rescale rescale) const {
        float sums[2], factors[2];
        float most = (counting.x & counting.y) == ~0u ? MOST : -1;
        while (true) {
            weigh_by(p, sums, s, rows);
            const float sum = fmaxf(fmaxf(sums[0], sums[1]), 0.0f);  // 0 for NaN
            if (!__any_sync(0xffffffff, sum > most)) break;
            mask(s, counting);
            if (follow(rows, s, factors)) rescale(factors);
            most = -mla::minus_infinity();
        }
        rows[0].sum += sums[0];
        rows[1].sum += sums[1];
#pragma unroll
        for (uint32_t i = 0; i < 16; ++i) {
            rows[i % 2].rounded += ptx::low_bf16(p[i]) + ptx::high_bf16(p[i]);
        }
    }
};

// Store weights to shared memory, operand A of the other warpgroup's MMAs: each warp its sixteen
// rows.
__device__ __forceinline__ void store_weights(Shared& shared, uint32_t tile,
                                              const Weights& p) {
    const uint32_t lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
    const uint32_t line = ptx::shared_address(shared.weights_of(tile)) + row * SPAN_BYTES;
#pragma unroll
    for (uint32_t step = 0; step < STEPS; ++step) {
        const uint32_t chunk = 2 * step + lane / 16;
        ptx::store_matrices(line + (chunk ^ row % 8) * 16, p + 4 * step);
    }
    ptx::fence_proxy_async_shared();
}
