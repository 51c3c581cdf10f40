// The softmax state of 64 heads does not fit into registers beside the outputs. In shared memory a
// lane has, for its warp's keys, the sums of the two heads that `spread` leaves it. Both warpgroups
// share the maxima, and take turns to weigh.
constexpr uint32_t LEFT = 2;  // heads of a thread after `spread` has combined all lanes' keys
static_assert(BLOCKS == 8);

// The first of this lane's two heads, as `head_of` numbers them.
__device__ __forceinline__ uint32_t first_left() {
    const uint32_t lane = threadIdx.x % 32;
    return lane / 16 * 8 + lane / 8 % 2 * 4 + lane / 4 % 2 * 2;
}

// Combine over the eight lanes that have other keys of the same heads (reduce-scatter); each keeps
// two heads.
template <typename Combine>
__device__ __forceinline__ void spread(float (&left)[LEFT], const PerHead& of, Combine combine) {
    const bool is_high = threadIdx.x & 16, is_middle = threadIdx.x & 8, is_low = threadIdx.x & 4;
    const auto meet = [&](bool second, float a, float b, uint32_t lanes) {
        return combine(second ? b : a, __shfl_xor_sync(0xffffffff, second ? a : b, lanes));
    };
    float eight[8], four[4];
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) eight[i] = meet(is_high, of[i], of[i + 8], 16);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) four[i] = meet(is_middle, eight[i], eight[i + 4], 8);
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) left[i] = meet(is_low, four[i], four[i + 2], 4);
}

__device__ __forceinline__ float2 two_heads(const float (&of)[HEADS], uint32_t block) {
    return *reinterpret_cast<const float2*>(&of[head_of(2 * block)]);
}

template <uint32_t role>
struct Weigher {
    Shared& shared;
    const Queries& queries;
    const Softmax& softmax;
    uint32_t turn = 0;  // of items that have keys
    bool moved = false;  // whether the last tile raised the maxima

    // The published values of this lane's two heads.
    __device__ __forceinline__ float2& own(float (&of)[WARPS][HEADS]) const {
        float* first = &of[threadIdx.x % 128 / 32][head_of(first_left())];
        return *reinterpret_cast<float2*>(first);
    }

    __device__ __forceinline__ void begin(const Item& item, uint32_t items) {
        turn = items % 2;
        queries.begin(shared);
        if (threadIdx.x < HEADS) {
            shared.maximum[turn][threadIdx.x] = mla::NarrowSoftmax().maximum;
            shared.q_scales[threadIdx.x] =
                softmax.scale * queries.scale(shared, item, threadIdx.x);
        }
        meet_both();  // the last item's published values are read
        Published& published = shared.published[role];
        own(published.sum) = own(published.weights) = own(published.rounded) = make_float2(0, 0);
        own(published.highest) = make_float2(mla::minus_infinity(), mla::minus_infinity());
    }

    // Update the highest scores, if the call wants them.
    __device__ __forceinline__ void note_highest(const Scores& s, const Keys& keys) {
        PerHead most;
#pragma unroll
        for (uint32_t j = 0; j < BLOCKS; ++j) {
            const float2 scale = two_heads(shared.q_scales, j);
#pragma unroll
            for (uint32_t i = 0; i < 2; ++i) {
                const float of_head = i % 2 ? scale.y : scale.x;
                const float first = s[4 * j + i] * of_head * keys.scale[0];
                const float second = s[4 * j + i + 2] * of_head * keys.scale[1];
                most[2 * j + i] = fmaxf(keys.counts[0] ? first : mla::minus_infinity(),
                                        keys.counts[1] ? second : mla::minus_infinity());
            }
        }
        float left[LEFT];
        spread(left, most, Greater());
        float2& highest = own(shared.published[role].highest);
        highest = make_float2(fmaxf(highest.x, left[0]), fmaxf(highest.y, left[1]));
    }

    // Scores become log2 of weights before the maximum is subtracted. Returns whether a maximum
    // must be raised.
    __device__ __forceinline__ bool prepare(Scores& s, const Keys& keys) const {
        bool lags = false;
#pragma unroll
        for (uint32_t j = 0; j < BLOCKS; ++j) {
            const float2 scale = two_heads(shared.q_scales, j);
            const float2 maximum = two_heads(shared.maximum[turn], j);
#pragma unroll
            for (uint32_t i = 0; i < 4; ++i) {
                const float of_head = i % 2 ? scale.y : scale.x;
                const float score = keys.counts[i / 2] ? s[4 * j + i] * of_head * keys.scale[i / 2]
                                                       : mla::minus_infinity();
                s[4 * j + i] = score + keys.log2[i / 2];
                lags |= s[4 * j + i] >
                        (i % 2 ? maximum.y : maximum.x) + mla::NarrowSoftmax::SLACK;
            }
        }
        return lags;
    }

    // Multiply the outputs by a tile's factors.
    __device__ __forceinline__ void scale_outputs(Sums& o, uint32_t tile) const {
#pragma unroll
        for (uint32_t j = 0; j < BLOCKS; ++j) {
            const float2 factor = two_heads(shared.factors[tile], j);
#pragma unroll
            for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) {
#pragma unroll
                for (uint32_t i = 0; i < 4; ++i) {
                    o[mma][4 * j + i] *= i % 2 ? factor.y : factor.x;
                }
            }
        }
    }

    // The same for sums of weights.
    __device__ __forceinline__ void scale_weights(uint32_t tile) {
        const float2 factor = two_heads(shared.factors[tile], first_left() / 2);
        Published& published = shared.published[role];
        for (float2* of : {&own(published.sum), &own(published.weights), &own(published.rounded)}) {
            *of = make_float2(of->x * factor.x, of->y * factor.y);
        }
    }

    // Raise the maxima to the scores of all four warps, and rescale the sums of weights.
    __device__ __forceinline__ void follow(const Scores& y) {
        PerHead most;
        float left[LEFT];
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            most[i] = fmaxf(y[i / 2 * 4 + i % 2], y[i / 2 * 4 + i % 2 + 2]);
        }
        spread(left, most, Greater());
#pragma unroll
        for (uint32_t i = 0; i < LEFT; ++i) {
            shared.most[role][threadIdx.x % 128 / 32][head_of(first_left() + i)] = left[i];
        }
        meet_warpgroup();
        const uint32_t head = threadIdx.x % 128;
        if (head < HEADS) {
            float best = shared.most[role][0][head];
            for (uint32_t i = 1; i < WARPS; ++i) best = fmaxf(best, shared.most[role][i][head]);
            mla::NarrowSoftmax row;
            row.maximum = shared.maximum[turn][head];
            shared.factors[role][head] = row.rescale(best);
            shared.maximum[turn][head] = row.maximum;
        }
        meet_warpgroup();
        scale_weights(role);
    }

    // Publish the weights of this warpgroup's tile, once their place is free. `rescale` later
    // rescales the outputs.
    template <typename Await>
    __device__ __forceinline__ void weigh(Scores& s, uint32_t number, Await await_place) {
        await_place();
        const Keys keys(shared, stage_of(role, number));
        if (softmax.wants_highest) note_highest(s, keys);
        moved = any_of_warpgroup(prepare(s, keys));
        if (moved) follow(s);
        if (threadIdx.x % 128 == 0) shared.moved[role] = moved;
        Codes codes;
        PerHead sums, with_scales;
#pragma unroll
        for (uint32_t j = 0; j < BLOCKS; ++j) {
            SumsOfTwo of_keys;
            codes[j] = weigh_four(of_keys, s + 4 * j, two_heads(shared.maximum[turn], j), keys);
            sums[2 * j] = of_keys.sum.x;
            sums[2 * j + 1] = of_keys.sum.y;
            with_scales[2 * j] = of_keys.weights.x;
            with_scales[2 * j + 1] = of_keys.weights.y;
        }
        store_weights(shared, role, codes);
        arrive(shared.weighed[role]);
        Published& published = shared.published[role];
        note(published.sum, sums);
        note(published.weights, with_scales);
#pragma unroll
        for (uint32_t j = 0; j < BLOCKS; ++j) {
            const float2 of_keys = sum_of(codes[j]);
            sums[2 * j] = of_keys.x;
            sums[2 * j + 1] = of_keys.y;
        }
        note(published.rounded, sums);
    }

    __device__ __forceinline__ void note(float (&of)[WARPS][HEADS], const PerHead& more) const {
        float left[LEFT];
        spread(left, more, Plus());
        float2& total = own(of);
        total = make_float2(total.x + left[0], total.y + left[1]);
    }

    // Rescale the outputs to the maxima of the tile that was weighed.
    __device__ __forceinline__ void rescale(Sums& o) const {
        if (moved) scale_outputs(o, role);
    }

    // Adopt the maxima that the other warpgroup's weights refer to.
    __device__ __forceinline__ void take_over(Sums& o, uint32_t tile) {
        if (!shared.moved[tile]) return;
        scale_weights(tile);
        scale_outputs(o, tile);
    }

    // End of an item: all values are published.
    __device__ __forceinline__ void join() const { meet_both(); }

    __device__ __forceinline__ void store(const Outputs& outputs, const Item& item,
                                          const Sums& o) const {
        meet_warpgroup();  // the last item's factors are read
        if (threadIdx.x % 128 < 32) {
#pragma unroll
            for (uint32_t i = 0; i < LEFT; ++i) {
                const uint32_t of = head_of(first_left() + i), head = item.head + of;
                const Whole whole(shared.published, of);
                const mla::NarrowSoftmax row{shared.maximum[turn][of], whole.highest, whole.sum,
                                             whole.weights, whole.rounded};
                shared.factors[role][of] = normaliser(outputs, head, row);
                if (role == EVEN) store_score(outputs, item, head, row);
            }
        }
        meet_warpgroup();
#pragma unroll
        for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
            store_head(outputs, item, o, role, i, shared.factors[role][head_of(i)]);
        }
    }
};
