// With sixteen heads there are registers for all chains of a tile's scores: the next tile's are
// pending while values are added. It pays if rows are gathered. Eight heads wait for rows anyway;
// if rows arrive sooner, this tile's values are more urgent (docs/notes).
constexpr bool SCORES_AHEAD = true;
constexpr uint32_t PANEL_STEPS = SPAN_BYTES / STEP_BYTES;
constexpr uint32_t SCORE_STEPS = (LATENT + (ROPE_IS_BF16 ? 0 : ROPE_BYTES)) / STEP_BYTES;
constexpr uint32_t SCORE_CHAINS = SCORE_STEPS / CHAIN;
static_assert(SCORE_STEPS % CHAIN == 0 && PANEL_STEPS % CHAIN == 0);

// Wait for a whole tile. A wgmma fence takes longer than some MMAs, so there is one.
template <uint32_t tile>
__device__ __forceinline__ void await_tile(Shared& shared, uint32_t number) {
#pragma unroll
    for (uint32_t i = 0; i < PANELS; ++i) {
        if (!begins_part(tile, i)) continue;
        uint64_t& full = shared.full[stage_of(tile, number)][part_of(panel_at(tile, i))];
        ptx::mbarrier_wait(at(full), phase_of(number));
    }
    ptx::fence_proxy_async_shared();
}

template <uint32_t tile>
struct Scorer {
    Scores chains[SCORE_CHAINS + ROPE_IS_BF16];

    __device__ __forceinline__ Scorer() { clear(chains); }

    // Issue a tile's rows times Q, once they have arrived. `end` waits for it.
    __device__ __forceinline__ void begin(Shared& shared, uint32_t number) {
        const Places places(shared);
        const uint32_t stage = stage_of(tile, number);
        await_tile<tile>(shared, number);
        hold();
        ptx::wgmma_fence();
#pragma unroll
        for (uint32_t step = 0; step < SCORE_STEPS; ++step) {
            const uint32_t panel = step / PANEL_STEPS, place = step % PANEL_STEPS * STEP_BYTES >> 4;
            multiply_scores<TILE_LAYOUT, TILE_LAYOUT>(chains[step / CHAIN],
                                                      places.k(stage, panel) + place,
                                                      places.codes(panel) + place,
                                                      step % CHAIN > 0);
        }
#pragma unroll
        for (uint32_t step = 0; step < ROPE_IS_BF16 * PANEL_STEPS; ++step) {
            const uint32_t place = step * STEP_BYTES >> 4;
            multiply_rope<TILE_LAYOUT, TILE_LAYOUT>(chains[SCORE_CHAINS],
                                                    places.k(stage, V_PANELS) + place,
                                                    places.codes(V_PANELS) + place, step > 0);
        }
        ptx::wgmma_commit();
    }

    __device__ __forceinline__ void end(Scores& s, Shared&, uint32_t) {
        ptx::wgmma_wait<0>();
        hold();
#pragma unroll
        for (uint32_t i = 0; i < 4 * BLOCKS; ++i) {
            s[i] = 0;
#pragma unroll
            for (uint32_t chain = 0; chain < SCORE_CHAINS + ROPE_IS_BF16; ++chain) {
                s[i] += chains[chain][i];
            }
        }
    }

    __device__ __forceinline__ void hold() {
#pragma unroll
        for (uint32_t i = 0; i < SCORE_CHAINS + ROPE_IS_BF16; ++i)
            ptx::wgmma_fence_operand(chains[i]);
    }
};

// The next tile arrives before this one's values are added.
static_assert(PAIRS == 2);
