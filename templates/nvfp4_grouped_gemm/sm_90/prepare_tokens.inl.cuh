// Transform warps dequantise NVFP4 tokens to bf16, K-permuted (see k_permuted.inl.cuh), for wgmma.

// Two quarters of a panel of a token, 32 codes: quarters 2 * half and 2 * half + 1.
__device__ __forceinline__ void prepare_half(const Shared& shared, uint32_t stage, uint32_t token,
                                             uint32_t panel, uint32_t half, uint32_t scale_row) {
    const uint32_t packed = token * PACKED_ROW_BYTES + (panel * 2 + half) * 16;
    const uint4 codes =
        ptx::load_shared_words(shared.packed(stage) + swizzle<PACKED_ROW_BYTES>(packed));
    const uint32_t two = ptx::load_shared_half(shared.token_scales(stage) +
                                               scale_offset(scale_row + token, panel) + 2 * half);
    const ScalePair scales(widen_scales(two << 4 | two << 12));
    const uint32_t row = shared.tokens(stage) + panel * TOKEN_PANEL_BYTES;
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) {  // pairs of a quarter
        const CodePair pick(i % 4);
        const uint32_t at = token * TOKEN_ROW_BYTES + i * 16 + half * 8;
        ptx::store_shared(row + swizzle<TOKEN_ROW_BYTES>(at),
                          make_uint2(scales.times(0, pick(i < 4 ? codes.x : codes.y)),
                                     scales.times(1, pick(i < 4 ? codes.z : codes.w))));
    }
}

// Neighbouring lanes take both halves of neighbouring tokens, which lie in different banks.
__device__ __forceinline__ void prepare_stage(const Shared& shared, uint32_t stage,
                                              const Tile& tile, uint32_t worker) {
    for (uint32_t i = worker; i < 2 * PANELS * TILE_TOKENS; i += 32 * PREPARE_WARPS) {
        const uint32_t token = i / 2 % TILE_TOKENS, panel = i / 2 / TILE_TOKENS;
        prepare_half(shared, stage, token, panel, i % 2, tile.scale_row);
    }
    ptx::fence_proxy_async_shared();
}
