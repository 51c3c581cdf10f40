// Epilogue with swap-AB, 16-bit outputs. Load a panel from TMEM: fragments of 16 columns of C by 8
// tokens. Each thread has two neighbouring tokens of a column, and of the column 8 further on; the
// second half has the columns 16 further on.
__device__ __forceinline__ void load_panel(float (&sums)[PANEL], uint32_t from) {
    constexpr uint32_t LANES_16 = 16 << 16, HALF = PANEL / 2;
    if constexpr (PANEL == 8) {
        ptx::tmem_load_8(sums, from);
        ptx::tmem_load_8(sums + HALF, from + LANES_16);
    }
#pragma unroll
    for (uint32_t i = 0; i + 16 <= PANEL; i += 16) {
        ptx::tmem_load_16(sums + i / 2, from + i);
        ptx::tmem_load_16(sums + HALF + i / 2, from + i + LANES_16);
    }
}

// Fill a box with it: 32 columns of 8 tokens at a time, transposed into rows (stmatrix.trans).
__device__ __forceinline__ void fill(const Boxes& boxes, const float (&sums)[PANEL]) {
    const uint32_t row = threadIdx.x % 8, chunk = threadIdx.x / 8 % (4 * BOX_WARPS);
#pragma unroll
    for (uint32_t i = 0; i < PANEL; i += 8) {
        uint32_t matrices[4];
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) {
            const float* const pair = sums + (j / 2 * PANEL + i) / 2 + j % 2 * 2;
            matrices[j] = pack_pair<Out>(pair[0], pair[1]);
        }
        ptx::store_transposed(boxes.at(i + row, chunk), matrices);
    }
}
