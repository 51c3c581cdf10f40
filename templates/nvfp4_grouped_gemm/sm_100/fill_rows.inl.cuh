// Epilogue with tokens as rows. Load a panel from TMEM: a thread has a token, neighbouring columns.
__device__ __forceinline__ void load_panel(float (&sums)[PANEL], uint32_t from) {
#pragma unroll
    for (uint32_t i = 0; i < PANEL; i += 8) ptx::tmem_load_row_8(sums + i, from + i);
}

// Fill a box with it, 16 bytes at a time; eight threads write to all banks.
__device__ __forceinline__ void fill(const Boxes& boxes, const float (&sums)[PANEL]) {
#pragma unroll
    for (uint32_t chunk = 0; chunk < 8; ++chunk) {
        ptx::store_shared(boxes.at(threadIdx.x % 32, chunk),
                          pack_16_bytes<Out>(sums + chunk * Boxes::CHUNK));
    }
}
