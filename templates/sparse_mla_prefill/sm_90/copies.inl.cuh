// Gather by cp.async: rows are copied as they are, 16 bytes a thread, one panel after the other.
struct Rows {
    const unsigned char* from[ROWS];
    uint32_t bytes[ROWS];  // of each copy: 16, or 0 for zeros
    uint32_t counting;  // bits of this warp's valid rows, in the order of its lanes
    float scale;  // of the row of this lane's entry

    // `row` is that of a lane's entry.
    __device__ __forceinline__ Rows(const Cache& cache, int32_t row) {
        counting = counting_bits(row);
        scale = row < 0 || cache.scales == nullptr ? 1.0f : cache.scales[row];
#pragma unroll
        for (uint32_t i = 0; i < ROWS; ++i) {
            const int32_t mine = row_of_thread(row, i);
            const uint64_t offset = mine < 0 ? 0 : uint64_t(mine) * ROW_BYTES;
            from[i] = cache.kv + offset + threadIdx.x % 8 * 16;
            bytes[i] = mine < 0 ? 0 : 16;
        }
    }
};

// A thread's place in a panel: its row of the first sixteen, its chunk of 16 bytes.
__device__ __forceinline__ uint32_t place_in_panel() {
    const uint32_t row = threadIdx.x % GATHER_THREADS / 8, chunk = threadIdx.x % 8;
    return row * SPAN_BYTES + (chunk ^ row % 8) * 16;
}
