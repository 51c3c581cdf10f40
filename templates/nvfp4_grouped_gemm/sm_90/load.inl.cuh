struct Maps {
    const TensorMap &tokens, &token_scales, &codes, &scales;
};

// Load tokens, and their scales if they are NVFP4.
__device__ __forceinline__ void load_tokens(const Shared& shared, const Maps& maps,
                                            const Tile& tile, uint32_t block, uint32_t stage) {
    const uint32_t full = shared.full(stage);
    if (PACKED_TOKENS) {
        ptx::tma_load(shared.packed(stage), maps.tokens, full, block * PACKED_ROW_BYTES, tile.row);
        ptx::tma_load(shared.token_scales(stage), maps.token_scales, full, 0, 0, block * PANELS,
                      tile.scale_block);
        return;
    }
#pragma unroll
    for (uint32_t panel = 0; panel < PANELS; ++panel) {
        ptx::tma_load(shared.tokens(stage) + panel * TOKEN_PANEL_BYTES, maps.tokens, full,
                      block * BLOCK_K + panel * PANEL_K, tile.row);
    }
}

__device__ __forceinline__ void load_stage(const Shared& shared, const Maps& maps, const Tile& tile,
                                           uint32_t block, uint32_t stage) {
    const uint32_t full = shared.full(stage);
    ptx::mbarrier_arrive_expect_tx(full, (PACKED_TOKENS ? PACKED_BYTES : TOKENS_BYTES) +
                                             CODES_BYTES + SCALES_BYTES + TOKEN_SCALES_BYTES);
#pragma unroll
    for (uint32_t span = 0; span < SPANS; ++span) {
        ptx::tma_load(shared.codes(stage) + span * CODE_SPAN_BYTES, maps.codes, full,
                      (block * SPANS + span) * CODE_ROW_BYTES, tile.weight, tile.expert);
    }
    ptx::tma_load(shared.scales(stage), maps.scales, full, 0, block * PANELS,
                  tile.weight / SCALE_ROWS, tile.expert);
    load_tokens(shared, maps, tile, block, stage);
}

// The producer warp: TMA loads of a stage for every block of K of every tile.
__device__ __forceinline__ void load(const Shared& shared, const Position& position,
                                     GroupedTiles& tiles, const Maps& maps) {
    const bool leader = ptx::elect_one();
    Ring<STAGES> ring;
    for_each_tile(tiles, [&](const Tile& tile) {
        if (!leader) return;
        position.for_each_block([&](uint32_t block) {
            ptx::mbarrier_wait(shared.empty(ring.stage), ring.free_phase());
            load_stage(shared, maps, tile, block, ring.stage);
            ring.advance();
        });
    });
}
