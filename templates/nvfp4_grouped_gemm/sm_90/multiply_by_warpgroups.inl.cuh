// Multiplying with a warpgroup's MMA, which reads tokens from shared memory and runs on while the
// next fragments are made.
constexpr uint32_t B_LAYOUT = ptx::wgmma_descriptor_high(8 * TOKEN_ROW_BYTES);
constexpr uint32_t RELEASES = 32 * CONSUMER_WARPS;  // arrivals that give a stage back

// Say that this lane no longer reads a stage, which preparing warps write: every lane for itself,
// for what one lane reads is not ordered by another's arrival. No branch: ptxas lets no MMA run
// across one.
__device__ __forceinline__ void release(const Shared& shared, uint32_t stage) {
    ptx::mbarrier_arrive_if(stage < STAGES, shared.empty(stage));
}

// Multiply fragments of GROUP_STEPS steps by the tokens, from step `step` of a panel on, while this
// warpgroup goes on.
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

// The group before has been multiplied when this one runs: so has the stage `before`, if this is
// the first of a stage.
__device__ __forceinline__ void finish_group(const Shared& shared, bool is_first, uint32_t before) {
    ptx::wgmma_wait<1>();
    if (is_first) release(shared, before);
}

// Multiply a stage. The fragments of one group of MMAs are made while the group before runs.
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
    uint32_t before = STAGES;  // the stage that MMAs under way read; none yet
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
