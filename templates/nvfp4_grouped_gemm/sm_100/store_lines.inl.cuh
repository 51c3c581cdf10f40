// Epilogue with swap-AB, 32-bit outputs. Load a panel from TMEM: a thread has a column of C,
// neighbouring tokens.
__device__ __forceinline__ void load_panel(float (&sums)[PANEL], uint32_t from) {
#pragma unroll
    for (uint32_t i = 0; i < PANEL; i += 8) ptx::tmem_load_row_8(sums + i, from + i);
}

// Epilogue stores from registers: a warp's 32 columns of four bytes are a line of L2 (128 bytes).
class Store {
  public:
    __device__ __forceinline__ Store(const Shared&, uint32_t rank, const MatrixOut<Out>& c)
        : c(c), mine(rank * ROWS + threadIdx.x % ROWS) {}

    // Store a panel, token by token: as many of them as the tile has.
    __device__ __forceinline__ void operator()(const Tile& tile, const float (&sums)[PANEL],
                                               uint32_t first) const {
        if (tile.column + mine >= c.columns) return;
        Out* to = c.base + uint64_t(tile.row + first) * c.columns + tile.column + mine;
        if (tile.rows >= first + PANEL) {
#pragma unroll
            for (uint32_t i = 0; i < PANEL; ++i, to += c.columns) store_one(to, sums[i]);
        } else {
#pragma unroll
            for (uint32_t i = 0; i < PANEL; ++i, to += c.columns) {
                if (first + i >= tile.rows) break;
                store_one(to, sums[i]);
            }
        }
    }

    __device__ __forceinline__ void end() const {}

  private:
    const MatrixOut<Out>& c;
    uint32_t mine;
};
