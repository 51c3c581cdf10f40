// Consumers with warp-level MMA (mma.sync), for few tokens: they fit into registers, a lane loads
// its quarter of a token's row in memory order, and no warp waits for another.
constexpr uint32_t RELEASES = CONSUMER_WARPS;  // arrivals that give a stage back

// Multiply the fragments of a panel by the tokens.
__device__ __forceinline__ void multiply_panel(Accumulators& sums, const Fragments& a,
                                               uint32_t tokens) {
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (uint32_t j = 0; j < TOKEN_BLOCKS; ++j) {
        const uint32_t at = (8 * j + lane / 4) * TOKEN_ROW_BYTES + lane % 4 * 32;
        const uint4 low = ptx::load_shared_words(tokens + swizzle<TOKEN_ROW_BYTES>(at));
        const uint4 high = ptx::load_shared_words(tokens + swizzle<TOKEN_ROW_BYTES>(at + 16));
        float* const of_block = &sums[4 * j];
        ptx::mma_bf16(of_block, a, low.x, low.y);
        ptx::mma_bf16(of_block, a + 4, low.z, low.w);
        ptx::mma_bf16(of_block, a + 8, high.x, high.y);
        ptx::mma_bf16(of_block, a + 12, high.z, high.w);
    }
}

__device__ __forceinline__ void multiply_stage(Accumulators& sums, const Shared& shared,
                                               uint32_t stage, const ThreadRows& rows) {
#pragma unroll
    for (uint32_t panel = 0; panel < PANELS; ++panel) {
        const Panel weights(shared, stage, rows, panel);
        Fragments a;
        weights.dequantise(a, 0);
        multiply_panel(sums, a, shared.tokens(stage) + panel * TOKEN_PANEL_BYTES);
    }
}

// Multiply one warp's weights by the tokens, over this CTA's blocks of K.
__device__ __forceinline__ void multiply(Accumulators& sums, const Shared& shared,
                                         const Position& position, Ring<STAGES>& ring,
                                         const ThreadRows& rows) {
    position.for_each_block([&](uint32_t) {
        ptx::mbarrier_wait(shared.full(ring.stage), ring.phase);
        multiply_stage(sums, shared, ring.stage, rows);
        __syncwarp();
        ptx::mbarrier_arrive_if(threadIdx.x % 32 == 0, shared.empty(ring.stage));
        ring.advance();
    });
}
