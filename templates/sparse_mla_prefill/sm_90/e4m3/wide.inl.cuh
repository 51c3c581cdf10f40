// The state of 64 heads does not fit registers beside sums of outputs. A lane has sums of the two
// heads that `spread` leaves it, of its warp's keys; maxima lie in shared memory, one for both
// warpgroups, which take turns to weigh.
constexpr uint32_t LEFT = 2;  // of a thread's heads, once all lanes' keys are taken together
static_assert(BLOCKS == 8);

// The first of this lane's two heads, as `head_of` numbers them.
__device__ __forceinline__ uint32_t first_left() {
    const uint32_t lane = threadIdx.x % 32;
    return lane / 16 * 8 + lane / 8 % 2 * 4 + lane / 4 % 2 * 2;
}

// Over the eight lanes that have other keys of the same heads; each keeps two heads.
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
    float sum[LEFT], rounded[LEFT], highest[LEFT];

    __device__ __forceinline__ void reset() {
#pragma unroll
        for (uint32_t i = 0; i < LEFT; ++i) {
            sum[i] = rounded[i] = 0;
            highest[i] = mla::minus_infinity();
        }
    }

    __device__ __forceinline__ void begin(const Item& item, uint32_t items) {
        turn = items % 2;
        queries.begin(shared);
        if (threadIdx.x < HEADS) {
            shared.maximum[turn][threadIdx.x] = mla::NarrowSoftmax().maximum;
            shared.q_scales[threadIdx.x] =
                softmax.scale * queries.scale(shared, item, threadIdx.x);
        }
        meet_both();
    }

    // Take note of the highest scores, where they are asked for.
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
#pragma unroll
        for (uint32_t i = 0; i < LEFT; ++i) highest[i] = fmaxf(highest[i], left[i]);
    }

    // Scores become log2 of weights but for the maximum. Whether a maximum must follow.
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

    // Multiply what is summed up by a tile's factors.
    __device__ __forceinline__ void rescale(Sums& o, uint32_t tile) {
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
#pragma unroll
        for (uint32_t i = 0; i < LEFT; ++i) {
            const float factor = shared.factors[tile][head_of(first_left() + i)];
            sum[i] *= factor;
            rounded[i] *= factor;
        }
    }

    // Let the maxima follow the scores of all four warps, and sums with them.
    __device__ __forceinline__ void follow(Sums& o, const Scores& y) {
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
        rescale(o, role);
    }

    // Publish the weights of this warpgroup's tile.
    __device__ __forceinline__ void weigh(Sums& o, Scores& s, uint32_t number) {
        const Keys keys(shared, stage_of(role, number));
        if (softmax.tells_highest) note_highest(s, keys);
        const bool moves = any_of_warpgroup(prepare(s, keys));
        if (moves) follow(o, s);
        if (threadIdx.x % 128 == 0) shared.moved[role] = moves;
        Codes codes;
        PerHead sums;
#pragma unroll
        for (uint32_t j = 0; j < BLOCKS; ++j) {
            float2 of_keys;
            codes[j] = weigh_four(of_keys, s + 4 * j, two_heads(shared.maximum[turn], j), keys);
            sums[2 * j] = of_keys.x;
            sums[2 * j + 1] = of_keys.y;
        }
        store_weights(shared, role, codes);
        arrive_as_warp(shared.weighed[role]);
        note(sum, sums);
#pragma unroll
        for (uint32_t j = 0; j < BLOCKS; ++j) {
            const float2 of_keys = sum_of(codes[j], keys);
            sums[2 * j] = of_keys.x;
            sums[2 * j + 1] = of_keys.y;
        }
        note(rounded, sums);
    }

    static __device__ __forceinline__ void note(float (&total)[LEFT], const PerHead& more) {
        float left[LEFT];
        spread(left, more, Plus());
#pragma unroll
        for (uint32_t i = 0; i < LEFT; ++i) total[i] += left[i];
    }

    __device__ __forceinline__ void take_over(Sums& o, uint32_t tile) {
        if (shared.moved[tile]) rescale(o, tile);
    }

    // An item ends: of this lane's heads the whole sums and the highest score.
    __device__ __forceinline__ void join() {
        const uint32_t warp = threadIdx.x % 128 / 32;
#pragma unroll
        for (uint32_t i = 0; i < LEFT; ++i) {
            const uint32_t head = head_of(first_left() + i);
            shared.told[role].sum[warp][head] = sum[i];
            shared.told[role].rounded[warp][head] = rounded[i];
            shared.told[role].highest[warp][head] = highest[i];
        }
        meet_both();
#pragma unroll
        for (uint32_t i = 0; i < LEFT; ++i) {
            const Whole whole(shared.told, head_of(first_left() + i));
            sum[i] = whole.sum;
            rounded[i] = whole.rounded;
            highest[i] = whole.highest;
        }
    }

    __device__ __forceinline__ void store(const Outputs& outputs, const Item& item,
                                          const Sums& o) const {
        meet_warpgroup();  // the last item's factors are read
        if (threadIdx.x % 128 < 32) {
#pragma unroll
            for (uint32_t i = 0; i < LEFT; ++i) {
                const uint32_t of = head_of(first_left() + i), head = item.head + of;
                const float maximum = item.rounds > 0 ? shared.maximum[turn][of] : 0.0f;
                const mla::NarrowSoftmax row{maximum, highest[i], sum[i], rounded[i]};
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
