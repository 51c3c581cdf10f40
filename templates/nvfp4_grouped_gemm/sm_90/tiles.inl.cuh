// A tile of C, as all roles see it.
struct Tile {
    uint32_t row, rows;  // tokens: the first, and how many
    uint32_t weight;     // the first row of B
    int32_t expert;
    uint32_t scale_block, scale_row;  // of the first token: a block of a_scales, a row of that

    // All lanes of a warp call.
    __device__ __forceinline__ Tile(const GroupTile& found, const GroupedTiles& tiles)
        : row(found.row), rows(min(found.row_end - found.row, TILE_TOKENS)),
          weight(found.column_tile * TILE_WEIGHTS), expert(found.expert) {
        if (!PACKED_TOKENS) return;
        const uint32_t begin = tiles.begin_of(found), of_group = found.row - begin;
        scale_block = begin / SCALE_ROWS + tiles.word_of(found) + of_group / SCALE_ROWS;
        scale_row = of_group % SCALE_ROWS;
    }
};

// Call visit(tile) for every tile of this CTA's cluster. All lanes of a warp call.
template <typename Visit>
__device__ __forceinline__ void for_each_tile(GroupedTiles& tiles, Visit visit) {
    GroupTile found;
    for (uint32_t number = blockIdx.y; tiles.find(number, found); number += gridDim.y) {
        visit(Tile(found, tiles));
    }
}
