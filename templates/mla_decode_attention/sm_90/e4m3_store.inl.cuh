{% include "sparse_mla_prefill/sm_90/e4m3/sums.inl.cuh" %}

// Store a head's sums times `factor`: eight threads have neighbouring columns, two each.
__device__ __forceinline__ void store_head(const Outputs& outputs, const Item& item, const Sums& o,
                                           uint32_t half, uint32_t i, float factor) {
    const uint32_t head = item.head + head_of(i), of = i / 2 * 4 + i % 2;
    if (head >= outputs.heads) return;
    const uint32_t column =
        half * HALF + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 * 2;
    const uint64_t part = outputs.partial_row(item, head) * LATENT + column;
    const uint64_t whole = (uint64_t(item.token) * outputs.heads + head) * LATENT + column;
#pragma unroll
    for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) {
        const float2 pair = make_float2(o[mma][of] * factor, o[mma][of + 2] * factor);
        if (outputs.is_partial()) {
            *reinterpret_cast<float2*>(outputs.partial_out + part + mma * VALUE_ROWS) = pair;
        } else {
            *reinterpret_cast<uint32_t*>(outputs.out + whole + mma * VALUE_ROWS) =
                ptx::pack_bf16(pair.x, pair.y);
        }
    }
}

__device__ __forceinline__ float normaliser(const Outputs& outputs, uint32_t head,
                                            const mla::NarrowSoftmax& row) {
    const float* sink = outputs.sink_of_whole();
    const bool has_sink = sink != nullptr && head < outputs.heads;
    return row.normaliser(has_sink ? sink[head] : mla::minus_infinity());
}

__device__ __forceinline__ void store_score(const Outputs& outputs, const Item& item,
                                            uint32_t head, const mla::NarrowSoftmax& row) {
    outputs.store_lse(item, head, row);
}
