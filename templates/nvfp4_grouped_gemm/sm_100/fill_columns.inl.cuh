// Load a panel: the thread has a column of C, neighbouring tokens.
__device__ __forceinline__ void load_panel(float (&sums)[PANEL], uint32_t from) {
#pragma unroll
    for (uint32_t i = 0; i < PANEL; i += 8) ptx::tensor_memory_load_row_8(sums + i, from + i);
}

// Fill a box with some tokens of it, those from `first` on: a row of 32 columns at a time.
__device__ __forceinline__ void fill(const Boxes& boxes, const float (&sums)[PANEL],
                                     uint32_t first) {
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (uint32_t row = 0; row < OUT_TOKENS; ++row) {
        ptx::store_shared(boxes.at(row, lane / 4) + lane % 4 * 4, sums[first + row]);
    }
}
