{% include "sparse_mla_prefill/sm_90/few/stage.inl.cuh" %}

// Store sums directly to memory: eight threads of a warp have neighbouring columns of a head.
__device__ __forceinline__ void store_partial(const Outputs& outputs, const Item& item,
                                              const Sums& o, uint32_t half) {
    const uint32_t first = half * HALF + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        const uint32_t head = item.head + head_of(i);
        if (head >= outputs.heads) continue;
        float* to = outputs.partial_out + outputs.partial_row(item, head) * LATENT + first;
#pragma unroll
        for (uint32_t panel = 0; panel < HALF_PANELS; ++panel) {
            const float* of = o[panel] + i / 2 * 4 + i % 2;
            to[panel * PANEL_COLUMNS] = of[0];
            to[panel * PANEL_COLUMNS + 8] = of[2];
        }
    }
}

__device__ __forceinline__ void stage(Shared& shared, const Outputs& outputs, const Item& item,
                                      Sums& o, const State& state, uint32_t half) {
    normalise(o, state, outputs.sink_of_whole(), item.head, outputs.heads);
    if (outputs.is_partial()) {
        store_partial(outputs, item, o, half);
    } else {
        stage_rows(shared, o, half);
    }
}

// Store the staged outputs. Partial outputs are already stored.
__device__ __forceinline__ void store(Shared& shared, const Outputs& outputs, const Item& item,
                                      uint32_t half) {
    if (outputs.is_partial()) return;
    store_rows(shared, outputs.out, item.token, item.head, outputs.heads, half, true);
}

// Store lse; four threads have all heads.
__device__ __forceinline__ void store_scores(const Outputs& outputs, const Item& item,
                                             const State& state) {
    if (threadIdx.x % 128 >= 4) return;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        outputs.store_lse(item, item.head + head_of(i), row_of(state, i));
    }
}
