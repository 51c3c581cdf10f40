{% include "sparse_mla_prefill/sm_90/few/stage.inl.cuh" %}

struct Outputs {
    uint16_t* out;
    float *lse, *max_logits;  // may be null
    const float* sink;  // may be null
    uint32_t heads;
    float dead_lse;
};

__device__ __forceinline__ void stage(Shared& shared, const Outputs& outputs, const Item& item,
                                      Sums& o, const State& state, uint32_t half) {
    normalise(o, state, outputs.sink, item.head, outputs.heads);
    stage_rows(shared, o, half);
}

__device__ __forceinline__ void store(Shared& shared, const Outputs& outputs, const Item& item,
                                      uint32_t half) {
    const bool has_keys = item.rounds > 0;
    store_rows(shared, outputs.out, item.token, item.head, outputs.heads, half, has_keys);
}

// Store lse and the highest scores; four threads have all heads.
__device__ __forceinline__ void store_scores(const Outputs& outputs, const Item& item,
                                             const State& state) {
    if (threadIdx.x % 128 >= 4) return;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        const uint32_t head = item.head + head_of(i);
        if (head >= outputs.heads) continue;
        const uint64_t row = uint64_t(item.token) * outputs.heads + head;
        const RunningSoftmax of_head = row_of(state, i);
        if (outputs.lse != nullptr) outputs.lse[row] = of_head.lse(outputs.dead_lse);
        if (outputs.max_logits != nullptr) outputs.max_logits[row] = of_head.max_logit();
    }
}
