// O += P V: a warpgroup's half of the output, 64 heads by 256 columns of V, laid out as Scores.
using Sums = float[HALF / 2];
using QuarterSums = float[HALF / 4];

__device__ __forceinline__ QuarterSums& quarter_of(Sums& o, uint32_t i) {
    return reinterpret_cast<QuarterSums&>(o[i * HALF / 4]);
}

__device__ __forceinline__ uint32_t values(const Places& places, uint32_t tile, uint32_t quarter) {
    return places.k(tile, quarter * PART_PANELS) | ptx::wgmma_descriptor_panels(PANEL_BYTES);
}

// EVEN adds one quarter after the other, each a group of MMAs, and releases them one by one. ODD
// adds both together: the last of many small MMAs cannot be issued until the first are done, and
// ODD has other work meanwhile.
constexpr uint32_t groups_of(uint32_t half) { return half == LEFT ? 2 : 1; }

// Add the values of the tile that this warpgroup scored, whose weights are in registers.
template <Half half>
__device__ __forceinline__ void add_own(Sums& o, const Places& places, const Weights& p) {
    constexpr uint32_t OWN = half == LEFT ? EVEN : ODD;
    ptx::wgmma_fence_operand(o);
    ptx::wgmma_fence();
#pragma unroll
    for (uint32_t i = 0; i < groups_of(half); ++i) {
        const uint32_t v = values(places, OWN, 2 * half + i);
#pragma unroll
        for (uint32_t step = 0; step < STEPS; ++step) {
            const uint32_t rows = v + (step * STEP_KEYS_BYTES >> 4);
            if constexpr (half == LEFT) {
                multiply_values<TILE_LAYOUT>(quarter_of(o, i), p + 4 * step, rows, true);
            } else {
                multiply_values<TILE_LAYOUT>(o, p + 4 * step, rows, true);
            }
        }
        ptx::wgmma_commit();
    }
}

// Add the values of the other warpgroup's tile, whose weights are in shared memory.
template <Half half>
__device__ __forceinline__ void add_other(Sums& o, const Places& places) {
    constexpr uint32_t OTHER = half == LEFT ? ODD : EVEN;
    ptx::wgmma_fence_operand(o);
    ptx::wgmma_fence();
#pragma unroll
    for (uint32_t i = 0; i < groups_of(half); ++i) {
        const uint32_t v = values(places, OTHER, 2 * half + i);
#pragma unroll
        for (uint32_t step = 0; step < STEPS; ++step) {
            const uint32_t p = places.weights(OTHER) + (step * STEP_BYTES >> 4);
            const uint32_t rows = v + (step * STEP_KEYS_BYTES >> 4);
            if constexpr (half == LEFT) {
                multiply_values<TILE_LAYOUT, TILE_LAYOUT>(quarter_of(o, i), p, rows, true);
            } else {
                multiply_values<TILE_LAYOUT, TILE_LAYOUT>(o, p, rows, true);
            }
        }
        ptx::wgmma_commit();
    }
}

// Release one of the two quarters of a tile, whose MMAs are done.
__device__ __forceinline__ void give_back(Shared& shared, uint32_t tile, Half half, uint32_t i) {
    free_part(shared, tile, 2 * half + i);
}

__device__ __forceinline__ void scale_sums(Sums& o, const float (&factors)[2]) {
#pragma unroll
    for (uint32_t i = 0; i < HALF / 2; ++i) o[i] *= factors[i / 2 % 2];
}

// The first of this thread's rows.
__device__ __forceinline__ uint32_t first_row() {
    return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
}

// Adopt the maxima that the other warpgroup's weights refer to, which are not lower.
__device__ __forceinline__ void take_over(State& rows, Sums& o, const Published& published) {
    float factors[2];
    bool moved = false;
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
        const float maximum = published.maximum[first_row() + 8 * h];
        moved |= maximum != rows[h].maximum;
        factors[h] = rows[h].rescale(maximum);
    }
    if (__any_sync(0xffffffff, moved)) scale_sums(o, factors);
}

__device__ __forceinline__ float of_four_threads(float sum) {
    sum += __shfl_xor_sync(0xffffffff, sum, 1);
    return sum + __shfl_xor_sync(0xffffffff, sum, 2);
}

__device__ __forceinline__ void publish_maxima(Published& published, const State& rows) {
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
        if (threadIdx.x % 4 == 0) published.maximum[first_row() + 8 * h] = rows[h].maximum;
    }
}

// End of an item: combine each row's sums and highest score. Both warpgroups use one maximum by
// now.
template <typename Keys>
__device__ __forceinline__ void join(State& rows, Published& mine, const Published& others,
                                     const Keys& keys) {
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
        rows[h].sum = of_four_threads(rows[h].sum);
        rows[h].rounded = of_four_threads(rows[h].rounded);
        if (threadIdx.x % 4 != 0) continue;
        mine.sum[first_row() + 8 * h] = rows[h].sum;
        mine.rounded[first_row() + 8 * h] = rows[h].rounded;
        mine.highest[first_row() + 8 * h] = rows[h].highest;
    }
    meet_both();
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
        rows[h].sum += others.sum[first_row() + 8 * h];
        rows[h].rounded += others.rounded[first_row() + 8 * h];
        rows[h].highest = fmaxf(rows[h].highest, others.highest[first_row() + 8 * h]);
    }
    const bool has_keys = keys.has_keys(rows[0].is_dead() || rows[1].is_dead());
    rows[0].settle(has_keys);
    rows[1].settle(has_keys);
}
