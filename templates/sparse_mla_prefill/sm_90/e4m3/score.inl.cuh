// Wait for the part of a tile that begins at panel number `i`. A wgmma fence takes longer than some
// MMAs, so one fence serves all parts that have arrived.
struct Arrivals {
    Shared& shared;
    uint32_t tile, number;
    bool are_all_seen = false;

    __device__ __forceinline__ uint64_t& full(uint32_t i) {
        return shared.full[stage_of(tile, number)][part_of(panel_at(tile, i))];
    }

    __device__ __forceinline__ void wait(uint32_t i) {
        if (are_all_seen) return;
        ptx::mbarrier_wait(at(full(i)), phase_of(number));
        are_all_seen = true;
#pragma unroll
        for (uint32_t later = i + 1; later < PANELS; ++later) {
            if (!begins_part(tile, later)) continue;
            are_all_seen &= ptx::mbarrier_test(at(full(later)), phase_of(number));
        }
        ptx::fence_proxy_async_shared();
    }
};

constexpr bool SCORES_AHEAD = false;
constexpr uint32_t CHAINS = HEADS <= 32 ? 2 : 1;  // pending

// Multiply a tile's rows by Q.
template <uint32_t tile>
__device__ __forceinline__ void score(Scores& s, Shared& shared, const Places& places,
                                      uint32_t number) {
    Arrivals arrivals{shared, tile, number};
    Scores chains[CHAINS];
#pragma unroll
    for (uint32_t i = 0; i < 4 * BLOCKS; ++i) s[i] = 0;
    clear(chains);
    uint32_t begun = 0;  // chains of this part
#pragma unroll
    for (uint32_t i = 0; i < PANELS; ++i) {
        const uint32_t panel = panel_at(tile, i);
        const uint32_t k = places.k(stage_of(tile, number), panel), q = places.codes(panel);
        if (begins_part(tile, i)) arrivals.wait(i);
        if (ROPE_IS_BF16 && panel == V_PANELS) {
            score_rope(s, k, q);
            continue;
        }
#pragma unroll
        for (uint32_t first = 0; first < steps_of(panel); first += CHAIN, ++begun) {
            Scores& chain = chains[begun % CHAINS];
            if (begun >= CHAINS) {
                ptx::wgmma_wait<CHAINS - 1>();
                add_sums(s, chain);
            }
            ptx::wgmma_fence();
#pragma unroll
            for (uint32_t step = first; step < first + CHAIN; ++step) {
                const uint32_t further = step * STEP_BYTES >> 4;
                multiply_scores<TILE_LAYOUT, TILE_LAYOUT>(chain, k + further, q + further,
                                                          step > first);
            }
            ptx::wgmma_commit();
        }
        if (i + 1 < PANELS && !begins_part(tile, i + 1)) continue;
        ptx::wgmma_wait<0>();
#pragma unroll
        for (uint32_t left = begun > CHAINS ? begun - CHAINS : 0; left < begun; ++left) {
            add_sums(s, chains[left % CHAINS]);
        }
        begun = 0;
    }
}

// Scores of a tile, computed on demand: many heads leave no registers to compute them ahead.
template <uint32_t tile>
struct Scorer {
    __device__ __forceinline__ void begin(Shared&, uint32_t) {}

    __device__ __forceinline__ void end(Scores& s, Shared& shared, uint32_t number) {
        score<tile>(s, shared, Places(shared), number);
    }
};
