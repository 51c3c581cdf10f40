// Load this warp's lanes of a panel of an accumulator from TMEM into registers.
__device__ __forceinline__ void take(float (&sums)[PANEL], uint32_t accumulator, uint32_t first) {
    const uint32_t lanes = threadIdx.x / 32 % 4 << 21;  // 32 lanes a warp, in bits 16 and up
    load_panel(sums, accumulator + lanes + first);
    ptx::tmem_wait_load();
    ptx::fence_registers(sums);
}

// An epilogue warp: load its panels of the accumulator from TMEM, scale, store. It releases the
// accumulator once the last panel is in registers.
__device__ __forceinline__ void epilogue(const Shared& shared, uint32_t rank,
                                               GroupedTiles& tiles, uint32_t tmem,
                                               const float* expert_scales,
                                               const MatrixOut<Out>& c) {
    const uint32_t group = threadIdx.x / ROWS;
    Store store(shared, rank, c);
    Ring<ACCUMULATORS> accumulators;
    for_each_tile(tiles, [&](const Tile& tile) {
        const float scale = expert_scales[tile.expert];
        const uint32_t columns = tile.columns();
        const uint32_t sums_at = accumulator(tmem, accumulators.stage);
        const auto give_back = [&] {
            ptx::tcgen05_fence_before();
            const uint32_t empty = ptx::map_shared(shared.tmem_empty(accumulators.stage), 0);
            if (ptx::elect_one()) ptx::mbarrier_arrive_cluster(empty);
        };
        ptx::mbarrier_wait(shared.tmem_full(accumulators.stage), accumulators.phase);
        ptx::tcgen05_fence_after();
        if (EPILOGUE_GROUPS > 1 && group * PANEL >= columns) give_back();
        for (uint32_t first = group * PANEL; first < columns; first += EPILOGUE_GROUPS * PANEL) {
            float sums[PANEL];
            take(sums, sums_at, first);
            if (first + EPILOGUE_GROUPS * PANEL >= columns) give_back();
#pragma unroll
            for (uint32_t i = 0; i < PANEL; ++i) sums[i] *= scale;
            store(tile, sums, first);
        }
        accumulators.advance();
    });
    store.end();
}
