// A wgmma fence takes longer than some MMAs, so one fence serves all parts that have arrived.
template <uint32_t tile>
__device__ __forceinline__ void score(Scores& s, Shared& shared, const Places& places,
                                      uint32_t number) {
    bool are_all_seen = false;
#pragma unroll
    for (uint32_t i = 0; i < PANELS; ++i) {
        const uint32_t panel = panel_at(tile, i);
        if (begins_part(tile, i)) {
            if (!are_all_seen) {
                ptx::mbarrier_wait(at(shared.full[tile][part_of(panel)]), number % 2);
                are_all_seen = true;
#pragma unroll
                for (uint32_t later = i + 1; later < PANELS; ++later) {
                    if (!begins_part(tile, later)) continue;
                    const uint32_t part = part_of(panel_at(tile, later));
                    are_all_seen &= ptx::mbarrier_test(at(shared.full[tile][part]), number % 2);
                }
                ptx::fence_proxy_async_shared();
            }
            ptx::wgmma_fence_operand(s);
            ptx::wgmma_fence();
        }
        const uint32_t k = places.k(tile, panel), q = places.q(panel);
#pragma unroll
        for (uint32_t step = 0; step < STEPS; ++step) {
            multiply_scores<TILE_LAYOUT, TILE_LAYOUT>(s, k + (step * STEP_BYTES >> 4),
                                                      q + (step * STEP_BYTES >> 4),
                                                      i > 0 || step > 0);
        }
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::wgmma_fence_operand(s);
}

// O += P V: add a tile's values to a half of V's columns, and release that half of the tile.
__device__ __forceinline__ void add(Sums& o, Shared& shared, const Places& places, uint32_t tile,
                                    uint32_t half) {
    const uint32_t p = places.weights(tile);
#pragma unroll
    for (uint32_t panel = 0; panel < HALF_PANELS; ++panel) ptx::wgmma_fence_operand(o[panel]);
    ptx::wgmma_fence();
#pragma unroll
    for (uint32_t panel = 0; panel < HALF_PANELS; ++panel) {
        const uint32_t v = places.k(tile, half * HALF_PANELS + panel);
#pragma unroll
        for (uint32_t step = 0; step < STEPS; ++step) {
            multiply_values<TILE_LAYOUT, TILE_LAYOUT>(o[panel], v + (step * STEP_KEYS_BYTES >> 4),
                                                      p + (step * STEP_BYTES >> 4), true);
        }
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
#pragma unroll
    for (uint32_t panel = 0; panel < HALF_PANELS; ++panel) ptx::wgmma_fence_operand(o[panel]);
    for (uint32_t i = 0; i < QUARTERS / 2; ++i) {
        arrive(shared.free[tile][half * QUARTERS / 2 + i]);
    }
}

// A consumer warpgroup: a round has an even tile, which EVEN scores, and an odd one, whose weights
// refer to maxima that are not lower. An item's last odd tile may be empty.
template <uint32_t role>
struct Multiplier {
    Shared& shared;
    const Softmax& softmax;
    State state;
    Sums o;

    __device__ __forceinline__ void reset() {
        state.reset();
#pragma unroll
        for (uint32_t panel = 0; panel < HALF_PANELS; ++panel) {
#pragma unroll
            for (uint32_t i = 0; i < 4 * BLOCKS; ++i) o[panel][i] = 0;
        }
    }

    // Score this warpgroup's tile, and publish its weights.
    __device__ __forceinline__ void weigh(Scores& s, uint32_t number) {
        softmax.prepare(s, shared.counts[role][number % 2]);
        softmax.weigh(s, state, shared.most[role], [&](const PerHead& factors) {
#pragma unroll
            for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
                state.sum[i] *= factors[i];
                state.rounded[i] *= factors[i];
            }
            scale_sums(o, factors);
        });
        publish_maxima(shared.published[role], state);
        store_weights(shared.weights[role], s);
        arrive(shared.weighed[role]);
    }

    // Wait for a tile's weights, and rescale sums to the maxima of these weights.
    __device__ __forceinline__ void await(uint32_t tile, uint32_t number) {
        ptx::mbarrier_wait(at(shared.weighed[tile]), number % 2);
        if (tile == role) return;
        PerHead factors;
        if (take_over(state, factors, shared.published[tile])) scale_sums(o, factors);
    }

    __device__ __forceinline__ void round(uint32_t number, bool is_last) {
        const Places places(shared);
        Scores s;
        score<role>(s, shared, places, number);
        if (HAS_ROPE) arrive(shared.free[role][ROPE]);
        if (is_last) arrive(shared.q_free);
        if (role == EVEN) weigh(s, number);
        await(EVEN, number);
        add(o, shared, places, EVEN, role);
        if (role == ODD) weigh(s, number);  // not earlier: sums still use EVEN's maxima
        await(ODD, number);
        add(o, shared, places, ODD, role);
    }
};
