// Two-level accumulation for FP8 (promotion). Hopper's tensor core aligns e4m3 products and their
// accumulator to the largest of them, and keeps 13 bits. So no more than CHAIN MMAs add to the same
// sums; these are then added in fp32. Several chains are pending, each in its own registers.
constexpr uint32_t CHAIN = 2;

template <uint32_t count, uint32_t size>
__device__ __forceinline__ void clear(float (&sums)[count][size]) {
#pragma unroll
    for (uint32_t i = 0; i < count; ++i) {
#pragma unroll
        for (uint32_t j = 0; j < size; ++j) sums[i][j] = 0;
        ptx::wgmma_fence_operand(sums[i]);
    }
}

// Add one array of sums to another.
template <uint32_t count>
__device__ __forceinline__ void add_sums(float* to, float (&sums)[count]) {
    ptx::wgmma_fence_operand(sums);
#pragma unroll
    for (uint32_t i = 0; i < count; ++i) to[i] += sums[i];
    ptx::wgmma_fence_operand(sums);
}

// MMAs of a panel's columns.
__device__ __forceinline__ constexpr uint32_t steps_of(uint32_t panel) {
    return 16 * chunks_of(panel) / STEP_BYTES;
}

// Rope in bf16, which the tensor core accumulates in fp32.
__device__ __forceinline__ void score_rope(Scores& s, uint32_t k, uint32_t q) {
    ptx::wgmma_fence_operand(s);
    ptx::wgmma_fence();
#pragma unroll
    for (uint32_t step = 0; step < steps_of(V_PANELS); ++step) {
        const uint32_t further = step * STEP_BYTES >> 4;
        multiply_rope<TILE_LAYOUT, TILE_LAYOUT>(s, k + further, q + further, step > 0);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::wgmma_fence_operand(s);
}
