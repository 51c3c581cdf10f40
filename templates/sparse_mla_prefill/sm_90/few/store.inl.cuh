struct Outputs {
    uint16_t* out;
    float *lse, *max_logits;  // may be null
    const float* sink;  // may be null
    uint32_t heads;
    float dead_lse;
};

// A warpgroup's half of the output, 256 columns of V by HEADS: of each panel of 64 columns a thread
// has two, as of keys, and its heads.
using Sums = float[HALF_PANELS][4 * BLOCKS];

__device__ __forceinline__ void scale_sums(Sums& o, const PerHead& factors) {
#pragma unroll
    for (uint32_t panel = 0; panel < HALF_PANELS; ++panel) {
#pragma unroll
        for (uint32_t i = 0; i < 4 * BLOCKS; ++i) o[panel][i] *= factors[i / 4 * 2 + i % 2];
    }
}

__device__ __forceinline__ void stage(Shared& shared, const Outputs& outputs, const Item& item,
                                      Sums& o, const State& state, uint32_t half) {
    PerHead factors;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        const uint32_t head = item.head + head_of(i);
        float sink = mla::minus_infinity();
        if (outputs.sink != nullptr && head < outputs.heads) sink = outputs.sink[head];
        factors[i] = row_of(state, i).normaliser(sink);
    }
    scale_sums(o, factors);
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t column = half * HALF + threadIdx.x % 128 / 32 * 16 + lane / 8 % 2 * 8;
    meet_warpgroup();  // what was staged before is out
#pragma unroll
    for (uint32_t panel = 0; panel < HALF_PANELS; ++panel) {
#pragma unroll
        for (uint32_t j = 0; j < BLOCKS; ++j) {
            const float* of = o[panel] + 4 * j;
            const uint32_t pairs[2] = {ptx::pack_bf16(of[0], of[1]), ptx::pack_bf16(of[2], of[3])};
            const uint32_t row = at(shared.staged[8 * j + lane % 8]);
            ptx::store_transposed(row + 2 * (column + panel * PANEL_COLUMNS), pairs);
        }
    }
    meet_warpgroup();
}

// Half of a head's outputs at a time, 16 bytes a thread; of an item without keys, zeros.
__device__ __forceinline__ void store(Shared& shared, const Outputs& outputs, const Item& item,
                                      uint32_t half) {
    const uint32_t lane = threadIdx.x % 32;
    for (uint32_t i = threadIdx.x % 128 / 32; i < HEADS; i += WARPS) {
        if (item.head + i >= outputs.heads) break;
        const uint64_t row = uint64_t(item.token) * outputs.heads + item.head + i;
        const uint32_t column = half * HALF + lane * 8;
        uint4 words = make_uint4(0, 0, 0, 0);
        if (item.rounds > 0) words = ptx::load_shared_words(at(shared.staged[i]) + 2 * column);
        *reinterpret_cast<uint4*>(outputs.out + row * LATENT + column) = words;
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
        const mla::RunningSoftmax of_head = row_of(state, i);
        if (outputs.lse != nullptr) outputs.lse[row] = of_head.lse(outputs.dead_lse);
        if (outputs.max_logits != nullptr) outputs.max_logits[row] = of_head.max_logit();
    }
}
