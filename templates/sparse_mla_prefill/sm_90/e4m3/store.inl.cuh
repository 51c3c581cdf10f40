{% include "sparse_mla_prefill/sm_90/e4m3/sums.inl.cuh" %}

struct Outputs {
    uint16_t* out;
    float *lse, *max_logits;  // may be null
    const float* sink;  // may be null
    uint32_t heads;
    float dead_lse;
};

// Store a head's sums times `factor`: eight threads have 32 contiguous bytes.
__device__ __forceinline__ void store_head(const Outputs& outputs, const Item& item, const Sums& o,
                                           uint32_t half, uint32_t i, float factor) {
    const uint32_t head = item.head + head_of(i), of = i / 2 * 4 + i % 2;
    if (head >= outputs.heads) return;
    uint16_t* to = outputs.out + (uint64_t(item.token) * outputs.heads + head) * LATENT +
                   half * HALF + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 * 2;
#pragma unroll
    for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) {
        *reinterpret_cast<uint32_t*>(to + mma * VALUE_ROWS) =
            ptx::pack_bf16(o[mma][of] * factor, o[mma][of + 2] * factor);
    }
}

__device__ __forceinline__ float normaliser(const Outputs& outputs, uint32_t head,
                                            const mla::NarrowSoftmax& row) {
    const bool has_sink = outputs.sink != nullptr && head < outputs.heads;
    return row.normaliser(has_sink ? outputs.sink[head] : mla::minus_infinity());
}

__device__ __forceinline__ void store_score(const Outputs& outputs, const Item& item,
                                            uint32_t head, const mla::NarrowSoftmax& row) {
    if (head >= outputs.heads) return;
    const uint64_t place = uint64_t(item.token) * outputs.heads + head;
    if (outputs.lse != nullptr) outputs.lse[place] = row.lse(outputs.dead_lse);
    if (outputs.max_logits != nullptr) outputs.max_logits[place] = row.max_logit();
}

// Store zeros for an item without keys, in a warpgroup's half of the columns.
__device__ __forceinline__ void store_nothing(const Outputs& outputs, const Item& item,
                                              uint32_t half) {
    constexpr uint32_t CHUNKS = HALF * sizeof(uint16_t) / sizeof(uint4);  // of a head
    const uint32_t thread = threadIdx.x % 128;
    for (uint32_t i = thread; i < HEADS * CHUNKS; i += 128) {
        const uint32_t head = item.head + i / CHUNKS;
        if (head >= outputs.heads) break;
        const uint64_t row = uint64_t(item.token) * outputs.heads + head;
        uint4* to = reinterpret_cast<uint4*>(outputs.out + row * LATENT + half * HALF);
        to[i % CHUNKS] = make_uint4(0, 0, 0, 0);
    }
    if (half == EVEN && thread < HEADS) {
        store_score(outputs, item, item.head + thread, mla::NarrowSoftmax());
    }
}
