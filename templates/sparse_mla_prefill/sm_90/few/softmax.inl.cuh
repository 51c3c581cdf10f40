// Online softmax with heads as columns (swap-AB). Sums of weights and highest scores are of the
// thread's own keys until an item ends.
struct State {
    PerHead maximum, sum, rounded, highest;

    __device__ __forceinline__ void reset() {
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            maximum[i] = RunningSoftmax().maximum;
            sum[i] = rounded[i] = 0;
            highest[i] = mla::minus_infinity();
        }
    }
};

struct Softmax {
    // The largest weight before the maximum must be raised: bf16 is as precise there.
    static constexpr float MOST = 256;

    float scale;
    bool wants_highest;

    // A scale of 0 becomes the least positive number: masked keys must stay apart from others.
    __device__ __forceinline__ Softmax(uint32_t bits, bool wants_highest)
        : scale(__uint_as_float(bits)), wants_highest(wants_highest) {
        if (scale == 0) scale = 1.17549435e-38f;
    }

    // Scores in units of log2; masked keys have no weight. A warp's sixteen keys have a bit each in
    // the producer warps' words, in the order in which `gather` reads entries.
    __device__ __forceinline__ void prepare(Scores& s, const uint16_t (&counts)[WARPS]) const {
        const uint32_t warp = threadIdx.x % 128 / 32, key = threadIdx.x % 32 / 4;
#pragma unroll
        for (uint32_t h = 0; h < 2; ++h) {
            const uint32_t row = key + 8 * h;
            const bool is_counted = counts[row / 4] >> (4 * warp + row % 4) & 1;
#pragma unroll
            for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
                float& score = s[i / 2 * 4 + 2 * h + i % 2];
                score = is_counted ? score * scale : mla::minus_infinity();
            }
        }
    }

    // Raise the maxima to the scores of all four warps; `factors` are those of earlier sums.
    __device__ __forceinline__ void follow(State& state, PerHead& factors, const Scores& s,
                                           float (&most)[WARPS][HEADS]) const {
        const uint32_t warp = threadIdx.x % 128 / 32;
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            const uint32_t at = i / 2 * 4 + i % 2;
            const float own = over_keys(fmaxf(s[at], s[at + 2]), Greater());
            if (threadIdx.x % 32 < 4) most[warp][head_of(i)] = own;
        }
        meet_warpgroup();
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            float score = most[0][head_of(i)];
#pragma unroll
            for (uint32_t other = 1; other < WARPS; ++other) {
                score = fmaxf(score, most[other][head_of(i)]);
            }
            RunningSoftmax row;
            row.maximum = state.maximum[i];
            factors[i] = row.rescale(score);
            state.maximum[i] = row.maximum;
        }
    }

    // Scores become weights. If maxima rise, `rescale` multiplies earlier sums.
    template <typename Rescale>
    __device__ __forceinline__ void weigh(Scores& s, State& state, float (&most)[WARPS][HEADS],
                                          Rescale rescale) const {
        Scores scores;
        float greatest = 0;
#pragma unroll
        for (uint32_t i = 0; i < 4 * BLOCKS; ++i) {
            scores[i] = s[i];
            s[i] = ptx::exp2_approx(scores[i] - state.maximum[i / 4 * 2 + i % 2]);
            greatest = fmaxf(greatest, s[i]);
        }
        if (any_of_warpgroup(greatest > MOST)) {
            PerHead factors;
            follow(state, factors, scores, most);
            rescale(factors);
#pragma unroll
            for (uint32_t i = 0; i < 4 * BLOCKS; ++i) {
                s[i] = ptx::exp2_approx(scores[i] - state.maximum[i / 4 * 2 + i % 2]);
            }
        }
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            const uint32_t at = i / 2 * 4 + i % 2;
            state.sum[i] += s[at] + s[at + 2];
            const uint32_t pair = ptx::pack_bf16(s[at], s[at + 2]);
            state.rounded[i] += ptx::low_bf16(pair) + ptx::high_bf16(pair);
            if (!wants_highest) continue;
            state.highest[i] = fmaxf(state.highest[i], fmaxf(scores[at], scores[at + 2]));
        }
    }
};

// Store weights to shared memory, a head a row: operand B of both warpgroups' MMAs.
__device__ __forceinline__ void store_weights(unsigned char (&to)[Q_PANEL_BYTES],
                                              const Scores& p) {
    const uint32_t lane = threadIdx.x % 32, row = lane % 8;
    const uint32_t chunk = threadIdx.x % 128 / 32 * 2 + lane / 8 % 2;
#pragma unroll
    for (uint32_t j = 0; j < BLOCKS; ++j) {
        const uint32_t pairs[2] = {ptx::pack_bf16(p[4 * j], p[4 * j + 1]),
                                   ptx::pack_bf16(p[4 * j + 2], p[4 * j + 3])};
        ptx::store_transposed(at(to) + (8 * j + row) * SPAN_BYTES + (chunk ^ row) * 16, pairs);
    }
    ptx::fence_proxy_async_shared();
}

__device__ __forceinline__ void publish_maxima(Published& published, const State& state) {
    if (threadIdx.x % 128 >= 4) return;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) published.maximum[head_of(i)] = state.maximum[i];
}

// Adopt the maxima that a tile's weights refer to, which are not lower; `factors` are those of
// earlier sums. Returns whether any of this thread's maxima changed.
__device__ __forceinline__ bool take_over(State& state, PerHead& factors,
                                          const Published& published) {
    bool moved = false;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        const float maximum = published.maximum[head_of(i)];
        moved |= maximum != state.maximum[i];
        factors[i] = ptx::exp2_approx(state.maximum[i] - maximum);
        state.maximum[i] = maximum;
        state.sum[i] *= factors[i];
        state.rounded[i] *= factors[i];
    }
    return moved;
}

__device__ __forceinline__ RunningSoftmax row_of(const State& state, uint32_t i) {
    return {state.maximum[i], state.highest[i], state.sum[i], state.rounded[i]};
}

// End of an item: combine the sums and the highest score of each head.
template <typename Keys>
__device__ __forceinline__ void join(State& state, Published (&published)[2], uint32_t half,
                                     const Keys& keys) {
    const uint32_t warp = threadIdx.x % 128 / 32;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        const float sum = over_keys(state.sum[i], Plus());
        const float rounded = over_keys(state.rounded[i], Plus());
        const float highest = over_keys(state.highest[i], Greater());
        if (threadIdx.x % 32 >= 4) continue;
        published[half].sum[warp][head_of(i)] = sum;
        published[half].rounded[warp][head_of(i)] = rounded;
        published[half].highest[warp][head_of(i)] = highest;
    }
    meet_both();
    bool has_dead = false;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        const uint32_t head = head_of(i);
        float sum = 0, rounded = 0, highest = mla::minus_infinity();
#pragma unroll
        for (uint32_t other = 0; other < 2 * WARPS; ++other) {
            sum += published[other / WARPS].sum[other % WARPS][head];
            rounded += published[other / WARPS].rounded[other % WARPS][head];
            highest = fmaxf(highest, published[other / WARPS].highest[other % WARPS][head]);
        }
        state.sum[i] = sum;
        state.rounded[i] = rounded;
        state.highest[i] = highest;
        has_dead |= sum == 0;
    }
    const bool has_keys = keys.has_keys(has_dead);
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        RunningSoftmax row = row_of(state, i);
        row.settle(has_keys);
        state.sum[i] = row.sum;
    }
}
