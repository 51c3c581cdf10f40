// Epilogue staging: a warpgroup's half of the outputs on its way to memory. It uses that half of
// the odd tile, which the warpgroup itself reads last. A warp writes and reads its own sixteen
// rows.
__device__ __forceinline__ uint32_t staged(Shared& shared, Half half) {
    return at(shared.k[ODD][half * HALF_PANELS]) + threadIdx.x % 128 / 32 * 16 * SPAN_BYTES;
}

// The factor of a row of sums.
__device__ __forceinline__ float normaliser(const float* sinks, uint32_t heads, uint32_t head,
                                            const RunningSoftmax& row) {
    float sink = mla::minus_infinity();
    if (sinks != nullptr && head < heads) sink = sinks[head];
    return row.normaliser(sink);
}

// Stage sums times factors, as bf16.
__device__ __forceinline__ void stage_rows(Shared& shared, const Sums& o, const float (&factors)[2],
                                           Half half) {
    const uint32_t lane = threadIdx.x % 32, row = lane % 16;
    const uint32_t line = staged(shared, half) + row * SPAN_BYTES;
    meet_warpgroup();
#pragma unroll
    for (uint32_t i = 0; i < HALF / 16; ++i) {
        uint32_t words[4];
#pragma unroll
        for (uint32_t k = 0; k < 4; ++k) {
            const float* pair = o + 8 * i + 2 * k;
            words[k] = ptx::pack_bf16(pair[0] * factors[k % 2], pair[1] * factors[k % 2]);
        }
        const uint32_t chunk = i % 4 * 2 + lane / 16;
        ptx::store_matrices(line + i / 4 * PANEL_BYTES + (chunk ^ row % 8) * 16, words);
    }
    __syncwarp();
}

// Store the staged rows to the token's heads from `head` on, as many as exist: a row at a time, 16
// bytes a thread.
__device__ __forceinline__ void store_rows(Shared& shared, uint16_t* out, uint32_t token,
                                           uint32_t head, uint32_t heads, Half half) {
    const uint32_t lane = threadIdx.x % 32, first = threadIdx.x % 128 / 32 * 16;
    const uint32_t from = staged(shared, half) + lane / 8 * PANEL_BYTES;
    const uint64_t row = uint64_t(token) * heads + head + first;
    uint16_t* to = out + row * LATENT + half * HALF + lane * 8;
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) {
        if (head + first + i >= heads) break;
        const uint4 words =
            ptx::load_shared_words(from + i * SPAN_BYTES + (lane % 8 ^ i % 8) * 16);
        *reinterpret_cast<uint4*>(to + i * LATENT) = words;
    }
}
