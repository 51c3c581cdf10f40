// A transform warp: between producer and consumers, it prepares every stage once that is loaded.
__device__ __forceinline__ void prepare(const Shared& shared, const Position& position,
                                        GroupedTiles& tiles) {
    const uint32_t worker = threadIdx.x - 32 * (PRODUCER_WARP + 1);
    Ring<STAGES> ring;
    for_each_tile(tiles, [&](const Tile& tile) {
        position.for_each_block([&](uint32_t) {
            ptx::mbarrier_wait(shared.full(ring.stage), ring.phase);
            prepare_stage(shared, ring.stage, tile, worker);
            ptx::mbarrier_arrive(shared.prepared(ring.stage));
            ring.advance();
        });
    });
}
