// Sums of weights and highest scores are of the thread's own keys until an item ends. See
// mla::NarrowSoftmax for what they are.
struct State {
    PerHead maximum, sum, rounded, highest;

    __device__ __forceinline__ void reset() {
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            maximum[i] = mla::NarrowSoftmax().maximum;
            sum[i] = rounded[i] = 0;
            highest[i] = mla::minus_infinity();
        }
    }

    __device__ __forceinline__ void scale_sums(const PerHead& factors) {
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            sum[i] *= factors[i];
            rounded[i] *= factors[i];
        }
    }
};

// A thread's two keys of a tile.
struct Keys {
    static constexpr float LEAST = 1e-18f;  // a row of scale 0 keeps a weight, though no value

    bool counts[2];
    float scale[2], log2[2], inverse[2];

    // A warp's sixteen keys have a bit in each gathering warp's word, where `gather` reads their
    // entries.
    __device__ __forceinline__ Keys(const Shared& shared, uint32_t stage) {
        const uint32_t warp = threadIdx.x % 128 / 32;
#pragma unroll
        for (uint32_t h = 0; h < 2; ++h) {
            const uint32_t row = threadIdx.x % 32 / 4 + 8 * h;
            counts[h] = shared.counts[stage][row / 4] >> (4 * warp + row % 4) & 1;
            scale[h] = shared.scales[stage][16 * warp + row];
            log2[h] = ptx::log2_approx(fmaxf(scale[h], LEAST));
            inverse[h] = __fdiv_rn(1.0f, fmaxf(scale[h], LEAST));
        }
    }
};

// Of a block's weights: a head's of the first key and of the second, then the next head's.
using Codes = uint32_t[BLOCKS];

struct Softmax {
    float scale;
    bool tells_highest;

    __device__ __forceinline__ Softmax(uint32_t bits, bool tells_highest)
        : scale(__uint_as_float(bits)), tells_highest(tells_highest) {}

    // Scores become log2 of weights but for the maximum. Whether a maximum must follow.
    __device__ __forceinline__ bool prepare(Scores& s, State& state, const PerHead& scales,
                                            const Keys& keys) const {
        bool lags = false;
#pragma unroll
        for (uint32_t i = 0; i < 4 * BLOCKS; ++i) {
            const uint32_t head = i / 4 * 2 + i % 2, h = i / 2 % 2;
            const float score = keys.counts[h] ? s[i] * scales[head] * keys.scale[h]
                                               : mla::minus_infinity();
            if (tells_highest) state.highest[head] = fmaxf(state.highest[head], score);
            s[i] = score + keys.log2[h];
            lags |= s[i] > state.maximum[head] + mla::NarrowSoftmax::SLACK;
        }
        return lags;
    }

    // Let the maxima follow the scores of all four warps; by what sums are to be multiplied.
    __device__ __forceinline__ void follow(State& state, PerHead& factors, const Scores& y,
                                           float (&most)[WARPS][HEADS]) const {
        const uint32_t warp = threadIdx.x % 128 / 32;
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            const uint32_t at = i / 2 * 4 + i % 2;
            const float own = over_keys(fmaxf(y[at], y[at + 2]), Greater());
            if (threadIdx.x % 32 < 4) most[warp][head_of(i)] = own;
        }
        meet_warpgroup();
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            float highest = most[0][head_of(i)];
#pragma unroll
            for (uint32_t other = 1; other < WARPS; ++other) {
                highest = fmaxf(highest, most[other][head_of(i)]);
            }
            mla::NarrowSoftmax row;
            row.maximum = state.maximum[i];
            factors[i] = row.rescale(highest);
            state.maximum[i] = row.maximum;
        }
    }

    __device__ __forceinline__ void weigh(Codes& codes, const Scores& y, State& state,
                                          const Keys& keys) const {
#pragma unroll
        for (uint32_t j = 0; j < BLOCKS; ++j) {
            float w[4];
#pragma unroll
            for (uint32_t i = 0; i < 4; ++i) {
                const float offset = mla::NarrowSoftmax::SHIFT - state.maximum[2 * j + i % 2];
                w[i] = ptx::exp2_approx(y[4 * j + i] + offset);
            }
            codes[j] = ptx::pack_e4m3(w[0], w[2], w[1], w[3]);
            const float4 r = ptx::unpack_e4m3(codes[j]);
            state.sum[2 * j] += w[0] * keys.inverse[0] + w[2] * keys.inverse[1];
            state.sum[2 * j + 1] += w[1] * keys.inverse[0] + w[3] * keys.inverse[1];
            state.rounded[2 * j] += r.x * keys.inverse[0] + r.y * keys.inverse[1];
            state.rounded[2 * j + 1] += r.z * keys.inverse[0] + r.w * keys.inverse[1];
        }
    }
};

// Weights to shared memory, a head a row, as B of both warpgroups' MMAs. A warp's sixteen keys are
// 16 bytes: key 0, key 8, key 1, ..; `load_values` has V's in the same order.
__device__ __forceinline__ void store_weights(Shared& shared, uint32_t tile, const Codes& codes) {
    const uint32_t row = threadIdx.x % 8, chunk = tile * WARPS + threadIdx.x % 128 / 32;
#pragma unroll
    for (uint32_t j = 0; j < BLOCKS; ++j) {
        const uint32_t line = at(shared.weights) + (8 * j + row) * SPAN_BYTES;
        ptx::store_transposed(line + (chunk ^ row) * 16, codes[j]);
    }
    ptx::fence_proxy_async_shared();
}

__device__ __forceinline__ void tell_maxima(Told& told, const State& state) {
    if (threadIdx.x % 128 >= 4) return;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) told.maximum[head_of(i)] = state.maximum[i];
}

// Take over the maxima that a tile's weights refer to, which are not lower; the factors by which
// sums must be multiplied. Whether any of this thread's has moved.
__device__ __forceinline__ bool take_over(State& state, PerHead& factors, const Told& told) {
    bool moved = false;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        const float maximum = told.maximum[head_of(i)];
        moved |= maximum != state.maximum[i];
        factors[i] = ptx::exp2_approx(state.maximum[i] - maximum);
        state.maximum[i] = maximum;
    }
    if (moved) state.scale_sums(factors);
    return moved;
}

// An item ends: the whole sums and the highest score of each head. One has keys where it has a sum.
__device__ __forceinline__ void join(State& state, Told (&told)[2], uint32_t half) {
    const uint32_t warp = threadIdx.x % 128 / 32;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        const float sum = over_keys(state.sum[i], Plus());
        const float rounded = over_keys(state.rounded[i], Plus());
        const float highest = over_keys(state.highest[i], Greater());
        if (threadIdx.x % 32 >= 4) continue;
        told[half].sum[warp][head_of(i)] = sum;
        told[half].rounded[warp][head_of(i)] = rounded;
        told[half].highest[warp][head_of(i)] = highest;
    }
    meet_both();
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        const uint32_t head = head_of(i);
        float sum = 0, rounded = 0, highest = mla::minus_infinity();
#pragma unroll
        for (uint32_t other = 0; other < 2 * WARPS; ++other) {
            const Told& of = told[other / WARPS];
            sum += of.sum[other % WARPS][head];
            rounded += of.rounded[other % WARPS][head];
            highest = fmaxf(highest, of.highest[other % WARPS][head]);
        }
        state.sum[i] = sum;
        state.rounded[i] = rounded;
        state.highest[i] = sum != 0 ? fmaxf(highest, -3.4e38f) : mla::minus_infinity();
    }
}
