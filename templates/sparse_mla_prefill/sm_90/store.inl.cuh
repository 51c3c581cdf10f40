{% include "sparse_mla_prefill/sm_90/stage.inl.cuh" %}

struct Outputs {
    uint16_t* out;
    float *lse, *max_logits;  // may be null
    const float* sink;  // may be null
    uint32_t heads;
    float dead_lse;
};

__device__ __forceinline__ void stage(Shared& shared, const Outputs& outputs, const Item& item,
                                      const Sums& o, const State& rows, Half half) {
    const uint32_t head = item.head + first_row();
    const float factors[2] = {normaliser(outputs.sink, outputs.heads, head, rows[0]),
                              normaliser(outputs.sink, outputs.heads, head + 8, rows[1])};
    stage_rows(shared, o, factors, half);
}

__device__ __forceinline__ void store(Shared& shared, const Outputs& outputs, const Item& item,
                                      Half half) {
    store_rows(shared, outputs.out, item.token, item.head, outputs.heads, half);
}

// Store one half of an item without keys.
__device__ __forceinline__ void store_zeros(const Outputs& outputs, const Item& item,
                                            Half half) {
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
        const uint32_t head = item.head + first_row() + 8 * h;
        if (head >= outputs.heads) continue;
        const uint64_t row = uint64_t(item.token) * outputs.heads + head;
        uint16_t* to = outputs.out + row * LATENT + half * HALF + threadIdx.x % 4 * 8;
        for (uint32_t group = 0; group < HALF / 32; ++group) {
            *reinterpret_cast<uint4*>(to + 32 * group) = make_uint4(0, 0, 0, 0);
        }
    }
}

// Store lse and the highest scores; one of the four threads of a row does it.
__device__ __forceinline__ void store_scores(const Outputs& outputs, const Item& item,
                                             const State& rows) {
    if (threadIdx.x % 4 != 0) return;
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
        const uint32_t head = item.head + first_row() + 8 * h;
        if (head >= outputs.heads) continue;
        const uint64_t row = uint64_t(item.token) * outputs.heads + head;
        if (outputs.lse != nullptr) outputs.lse[row] = rows[h].lse(outputs.dead_lse);
        if (outputs.max_logits != nullptr) outputs.max_logits[row] = rows[h].max_logit();
    }
}

// The first item from this one on that has keys. Items without keys are stored on the way.
__device__ __forceinline__ Item with_keys(Item item, const Work& work, const Outputs& outputs,
                                          Half half) {
    while (item.exists(work) && item.rounds == 0) {
        const State rows;
        store_zeros(outputs, item, half);
        if (half == LEFT) store_scores(outputs, item, rows);
        item = item.after(work);
    }
    return item;
}
