// Epilogue: store the part of a tile that this CTA owns, a pair of neighbouring columns at a time.
__device__ __forceinline__ void store(const Accumulators& sums, const Parts& parts, Out* c,
                                      uint32_t n, const Tile& tile, const ThreadRows& rows,
                                      float scale) {
    const uint32_t column = tile.weight + rows.first;
    if (column >= n) return;
    Out* const first = c + uint64_t(tile.row) * n + column;
#pragma unroll
    for (uint32_t i = 0; i < 2 * TOKEN_BLOCKS; ++i) {
        if (SPLITS && !parts.owns(i / 2)) continue;
        const float* const pair = &sums[i / 2 * 4 + i % 2];
        const uint32_t token = i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
        if (token < tile.rows) {
            store_pair(first + uint64_t(token) * n, pair[0] * UNIT * scale,
                       pair[2] * UNIT * scale);
        }
    }
}

// A consumer warp: accumulate, then the epilogue: add the partial sums of the other K slices,
// store.
__device__ __forceinline__ void consume(const Shared& shared, const Position& position,
                                                   GroupedTiles& tiles, Parts& parts, Out* c,
                                                   uint32_t n, const float* expert_scales) {
    const ThreadRows rows;
    Ring<STAGES> ring;
    for_each_tile(tiles, [&](const Tile& tile) {
        const float scale = expert_scales[tile.expert];
        Accumulators sums = {};
        multiply(sums, shared, position, ring, rows);
        if (SPLITS) parts.sum(sums, threadIdx.x, 32 * CONSUMER_WARPS);
        store(sums, parts, c, n, tile, rows, scale);
    });
}
