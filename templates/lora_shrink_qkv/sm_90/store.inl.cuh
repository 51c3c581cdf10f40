// Epilogue stores. `row` is the thread's first row within the tile; its second is eight further. A
// thread holds a pair of columns of each block of eight.
struct Rows {
    bool first, second;  // whether the tile has them

    __device__ Rows(const Tile& tile, uint32_t row)
        : first(row < tile.rows), second(!REPEATS && row + 8 < tile.rows) {}
};

// Store the columns this CTA owns, a pair at a time: four threads fill 32 bytes of fp32.
__device__ __forceinline__ void store_pairs(const Accumulators& sums, const Parts& parts,
                                            const PlaneRow<Out>& c, const Rows& rows) {
#pragma unroll
    for (uint32_t b = 0; b < COLUMN_BLOCKS; ++b) {
        if (!parts.owns(b) || !c.holds(8 * b)) continue;
        Out* to = c.at(8 * b) + threadIdx.x % 4 * 2;
        if (rows.first) store_pair(to, sums[4 * b], sums[4 * b + 1]);
        if (rows.second) store_pair(c.below(to, 8), sums[4 * b + 2], sums[4 * b + 3]);
    }
}

// The pairs of four blocks from `b`, of the thread's first or second row; zeros beyond the tile.
__device__ __forceinline__ void pack_pairs(const Accumulators& sums, uint32_t b, uint32_t second,
                                           uint32_t (&words)[4]) {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
        words[i] = 0;
        if (b + i >= COLUMN_BLOCKS) continue;
        const float* pair = &sums[4 * (b + i) + 2 * second];
        store_pair(reinterpret_cast<Out*>(&words[i]), pair[0], pair[1]);
    }
}

// The same for 16-bit outputs: a quad transposes four blocks, so that each thread stores one block
// of 16 bytes.
__device__ __forceinline__ void store_blocks(const Accumulators& sums, const Parts& parts,
                                             const PlaneRow<Out>& c, const Rows& rows) {
#pragma unroll
    for (uint32_t b = 0; b < COLUMN_BLOCKS; b += 4) {
        const uint32_t block = b + ptx::lane() % 4;
        const bool stores = block < COLUMN_BLOCKS && parts.owns(block) && c.holds(8 * block);
        Out* const to = c.at(8 * block);
        uint32_t words[4];
        pack_pairs(sums, b, 0, words);
        transpose_quad(words);
        if (stores && rows.first) store_words(to, words);
        if (REPEATS) continue;
        pack_pairs(sums, b, 1, words);
        transpose_quad(words);
        if (stores && rows.second) store_words(c.below(to, 8), words);
    }
}
