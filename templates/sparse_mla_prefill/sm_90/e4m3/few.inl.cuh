// Online softmax with heads as columns (swap-AB). Sums of weights and highest scores are of the
// thread's own keys until an item ends. See mla::NarrowSoftmax.
struct State {
    PerHead maximum, sum, weights, rounded, highest;

    __device__ __forceinline__ void reset() {
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            maximum[i] = mla::NarrowSoftmax().maximum;
            sum[i] = weights[i] = rounded[i] = 0;
            highest[i] = mla::minus_infinity();
        }
    }

    __device__ __forceinline__ void scale_sums(const PerHead& factors) {
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            sum[i] *= factors[i];
            weights[i] *= factors[i];
            rounded[i] *= factors[i];
        }
    }
};

// How a warpgroup's scores become weights; the state of a thread's heads is in its registers.
template <uint32_t role>
struct Weigher {
    Shared& shared;
    const Queries& queries;
    const Softmax& softmax;
    PerHead scales;  // of scores, to units of log2, without the rows' scales
    PerHead factors;  // of earlier sums, if the last tile raised the maxima
    bool moved;
    State state;

    __device__ __forceinline__ void begin(const Item& item, uint32_t) {
        state.reset();
        queries.begin(shared);
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            scales[i] = softmax.scale * queries.scale(shared, item, head_of(i));
        }
    }

    // Scores become log2 of weights before the maximum is subtracted. Returns whether a maximum
    // must be raised.
    __device__ __forceinline__ bool prepare(Scores& s, const Keys& keys) {
        bool lags = false;
#pragma unroll
        for (uint32_t i = 0; i < 4 * BLOCKS; ++i) {
            const uint32_t head = i / 4 * 2 + i % 2, h = i / 2 % 2;
            const float score = keys.counts[h] ? s[i] * scales[head] * keys.scale[h]
                                               : mla::minus_infinity();
            if (softmax.wants_highest) state.highest[head] = fmaxf(state.highest[head], score);
            s[i] = score + keys.log2[h];
            lags |= s[i] > state.maximum[head] + mla::NarrowSoftmax::SLACK;
        }
        return lags;
    }

    // Raise the maxima to the scores of all four warps, and rescale the sums of weights.
    __device__ __forceinline__ void follow(const Scores& y) {
        float(&most)[WARPS][HEADS] = shared.most[role];
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
        state.scale_sums(factors);
    }

    // Publish the weights of this warpgroup's tile, once their place is free. `rescale` later
    // rescales the outputs.
    template <typename Await>
    __device__ __forceinline__ void weigh(Scores& s, uint32_t number, Await await_place) {
        const Keys keys(shared, stage_of(role, number));
        moved = any_of_warpgroup(prepare(s, keys));
        if (moved) follow(s);
        Codes codes;
        PerHead sums, with_scales;
#pragma unroll
        for (uint32_t j = 0; j < BLOCKS; ++j) {
            const float2 maximum = make_float2(state.maximum[2 * j], state.maximum[2 * j + 1]);
            SumsOfTwo of_keys;
            codes[j] = weigh_four(of_keys, s + 4 * j, maximum, keys);
            sums[2 * j] = of_keys.sum.x;
            sums[2 * j + 1] = of_keys.sum.y;
            with_scales[2 * j] = of_keys.weights.x;
            with_scales[2 * j + 1] = of_keys.weights.y;
        }
        if (threadIdx.x % 128 < 4) {
#pragma unroll
            for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
                shared.published[role].maximum[head_of(i)] = state.maximum[i];
            }
        }
        await_place();
        store_weights(shared, role, codes);
        arrive(shared.weighed[role]);
        note(sums, with_scales, codes);
    }

    // Add a tile's sums to the thread's, after its weights are published, because others wait for
    // them.
    __device__ __forceinline__ void note(PerHead& sums, PerHead& with_scales, Codes& codes) {
        ptx::wgmma_fence_operand(sums);
        ptx::wgmma_fence_operand(with_scales);
        ptx::wgmma_fence_operand(codes);
#pragma unroll
        for (uint32_t j = 0; j < BLOCKS; ++j) {
            const float2 rounded = sum_of(codes[j]);
            state.rounded[2 * j] += rounded.x;
            state.rounded[2 * j + 1] += rounded.y;
        }
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            state.sum[i] += sums[i];
            state.weights[i] += with_scales[i];
        }
    }

    // Rescale the outputs to the maxima of the tile that was weighed.
    __device__ __forceinline__ void rescale(Sums& o) const {
        if (moved) scale_sums(o, factors);
    }

    // Adopt the maxima that a tile's weights refer to, which are not lower.
    __device__ __forceinline__ void take_over(Sums& o, uint32_t tile) {
        PerHead to_follow;
        bool lag = false;
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            const float maximum = shared.published[tile].maximum[head_of(i)];
            lag |= maximum != state.maximum[i];
            to_follow[i] = ptx::exp2_approx(state.maximum[i] - maximum);
            state.maximum[i] = maximum;
        }
        if (!lag) return;
        state.scale_sums(to_follow);
        scale_sums(o, to_follow);
    }

    // End of an item: combine the sums and the highest score of each head. One has keys where it
    // has a sum.
    __device__ __forceinline__ void join() {
        const uint32_t warp = threadIdx.x % 128 / 32;
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            const float sum = over_keys(state.sum[i], Plus());
            const float weights = over_keys(state.weights[i], Plus());
            const float rounded = over_keys(state.rounded[i], Plus());
            const float highest = over_keys(state.highest[i], Greater());
            if (threadIdx.x % 32 >= 4) continue;
            shared.published[role].sum[warp][head_of(i)] = sum;
            shared.published[role].weights[warp][head_of(i)] = weights;
            shared.published[role].rounded[warp][head_of(i)] = rounded;
            shared.published[role].highest[warp][head_of(i)] = highest;
        }
        meet_both();
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            const Whole whole(shared.published, head_of(i));
            state.sum[i] = whole.sum;
            state.weights[i] = whole.weights;
            state.rounded[i] = whole.rounded;
            state.highest[i] = whole.highest;
        }
    }

    __device__ __forceinline__ void store(const Outputs& outputs, const Item& item,
                                          const Sums& o) const {
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            const mla::NarrowSoftmax row{state.maximum[i], state.highest[i], state.sum[i],
                                         state.weights[i], state.rounded[i]};
            const uint32_t head = item.head + head_of(i);
            store_head(outputs, item, o, role, i, normaliser(outputs, head, row));
            if (role == EVEN && threadIdx.x % 128 < 4) store_score(outputs, item, head, row);
        }
    }
};
