struct Outputs {
    uint16_t* out;
    float *lse, *max_logits;  // may be null
    const float* sink;  // may be null
    uint32_t heads;
    float dead_lse;
};

// A warpgroup's half of the output, 256 columns of V by HEADS: four MMAs of 64 columns, of which a
// warp has sixteen and a thread two neighbours: o[i][4j + 2h + q] is of column h and head
// 8j + 2 (lane % 4) + q.
constexpr uint32_t VALUE_ROWS = 64, VALUE_MMAS = HALF / VALUE_ROWS;
using Sums = float[VALUE_MMAS][4 * BLOCKS];

__device__ __forceinline__ void scale_sums(Sums& o, const PerHead& factors) {
#pragma unroll
    for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) {
#pragma unroll
        for (uint32_t i = 0; i < 4 * BLOCKS; ++i) o[mma][i] *= factors[i / 4 * 2 + i % 2];
    }
}

__device__ __forceinline__ mla::NarrowSoftmax row_of(const State& state, uint32_t i) {
    return {state.maximum[i], state.highest[i], state.sum[i], state.rounded[i]};
}

// Eight threads have 32 bytes next to each other. An item without keys has sums of nothing.
__device__ __forceinline__ void store(const Outputs& outputs, const Item& item, const Sums& o,
                                      const State& state, uint32_t half) {
    const uint32_t column = half * HALF + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 * 2;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        const uint32_t head = item.head + head_of(i), of = i / 2 * 4 + i % 2;
        if (head >= outputs.heads) continue;
        const float sink = outputs.sink == nullptr ? mla::minus_infinity() : outputs.sink[head];
        const float factor = row_of(state, i).normaliser(sink);
        uint16_t* to = outputs.out + (uint64_t(item.token) * outputs.heads + head) * LATENT;
#pragma unroll
        for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) {
            *reinterpret_cast<uint32_t*>(to + column + mma * VALUE_ROWS) =
                ptx::pack_bf16(o[mma][of] * factor, o[mma][of + 2] * factor);
        }
    }
}

// What is known of the scores; four threads have all heads.
__device__ __forceinline__ void store_scores(const Outputs& outputs, const Item& item,
                                             const State& state) {
    if (threadIdx.x % 128 >= 4) return;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        const uint32_t head = item.head + head_of(i);
        if (head >= outputs.heads) continue;
        const uint64_t row = uint64_t(item.token) * outputs.heads + head;
        const mla::NarrowSoftmax of_head = row_of(state, i);
        if (outputs.lse != nullptr) outputs.lse[row] = of_head.lse(outputs.dead_lse);
        if (outputs.max_logits != nullptr) outputs.max_logits[row] = of_head.max_logit();
    }
}
