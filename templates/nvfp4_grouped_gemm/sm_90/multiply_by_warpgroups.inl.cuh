// Consumers with wgmma: it reads tokens from shared memory and runs asynchronously while the next
// fragments are dequantised.
constexpr uint32_t B_LAYOUT = ptx::wgmma_descriptor_high(8 * TOKEN_ROW_BYTES);
constexpr uint32_t RELEASES = 32 * CONSUMER_WARPS;  // arrivals that give a stage back

// Release the stage. Every lane arrives for itself: another lane's arrive does not order this
// lane's reads with the transform warps' writes. No branch, because ptxas lets no wgmma run across
// one.
__device__ __forceinline__ void release(const Shared& shared, uint32_t stage) {
    ptx::mbarrier_arrive_if(stage < STAGES, shared.empty(stage));
}

// Issue the MMAs of GROUP_STEPS steps of fragments by tokens, from step `step` of a panel on.
__device__ __forceinline__ void multiply_group(Accumulators& sums, const Fragments& a,
                                               uint32_t tokens, uint32_t step) {
    const uint32_t place = ptx::uniform(ptx::wgmma_descriptor_low(tokens));
    ptx::wgmma_fence();
#pragma unroll
    for (uint32_t i = 0; i < GROUP_STEPS; ++i) {
        wgmma<B_LAYOUT>(sums, a + 4 * i, place + ((step + i) * TOKEN_STEP_BYTES >> 4));
    }
    ptx::wgmma_commit();
}

// Wait until only the latest group is pending. If that is the first group of a stage, the stage
// `before` is multiplied: release it.
__device__ __forceinline__ void finish_group(const Shared& shared, bool is_first, uint32_t before) {
    ptx::wgmma_wait<1>();
    if (is_first) release(shared, before);
}

// Multiply a stage. The dequantisation of one group's fragments overlaps the MMAs of the group
// before.
__device__ __forceinline__ void multiply_stage(Accumulators& sums, const Shared& shared,
                                               uint32_t stage, const ThreadRows& rows,
                                               uint32_t before) {
#pragma unroll
    for (uint32_t panel = 0; panel < PANELS; ++panel) {
        const uint32_t tokens = shared.tokens(stage) + panel * TOKEN_PANEL_BYTES;
        const Panel weights(shared, stage, rows, panel);
#pragma unroll
        for (uint32_t step = 0; step < STEPS; step += GROUP_STEPS) {
            Fragments a;
            weights.dequantise(a, step);
            multiply_group(sums, a, tokens, step);
            finish_group(shared, panel == 0 && step == 0, before);
        }
    }
}

// Multiply one warpgroup's weights by the tokens, over this CTA's blocks of K.
__device__ __forceinline__ void multiply(Accumulators& sums, const Shared& shared,
                                         const Position& position, Ring<STAGES>& ring,
                                         const ThreadRows& rows) {
    uint32_t before = STAGES;  // the stage that pending MMAs read; STAGES: none
    position.for_each_block([&](uint32_t) {
        ptx::mbarrier_wait(shared.full(ring.stage), ring.phase);
        ptx::mbarrier_wait(shared.prepared(ring.stage), ring.phase);
        multiply_stage(sums, shared, ring.stage, rows, before);
        before = ring.stage;
        ring.advance();
    });
    ptx::wgmma_wait<0>();
    release(shared, before);
}
