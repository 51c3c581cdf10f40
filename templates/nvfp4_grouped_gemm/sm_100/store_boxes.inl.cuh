// Epilogue stores by TMA: a panel is a warp's part of a box.
class Store {
  public:
    __device__ __forceinline__ Store(const Shared& shared, uint32_t rank, const MatrixOut<Out>& c)
        : c(c),
          boxes(shared.boxes(threadIdx.x / (32 * BOX_WARPS)), 1 + threadIdx.x / (32 * BOX_WARPS)),
          rank(rank) {}

    // Store a panel: as many of its tokens as the tile has.
    __device__ __forceinline__ void operator()(const Tile& tile, const float (&sums)[PANEL],
                                               uint32_t first) {
        const uint32_t warp = threadIdx.x / 32 % 4;
        const uint32_t token = ROWS_ARE_TOKENS ? 32 * warp : first;
        const uint32_t column =
            tile.column +
            (ROWS_ARE_TOKENS ? first : rank * ROWS + warp / BOX_WARPS * Boxes::COLUMNS);
        if (column >= c.columns || token >= tile.rows) return;
        fill(boxes, sums);
        boxes.send(c, tile.row + token, column, min(tile.rows - token, OUT_TOKENS));
    }

    __device__ __forceinline__ void end() const { boxes.end(); }

  private:
    const MatrixOut<Out>& c;
    Boxes boxes;
    uint32_t rank;
};
