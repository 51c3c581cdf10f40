{% include "sparse_mla_prefill/sm_90/e4m3/chains.inl.cuh" %}
{% if SCORES_AHEAD -%}
{% include "sparse_mla_prefill/sm_90/e4m3/score_ahead.inl.cuh" %}
{%- else -%}
{% include "sparse_mla_prefill/sm_90/e4m3/score.inl.cuh" %}
{%- endif %}
{% include "sparse_mla_prefill/sm_90/e4m3/values.inl.cuh" %}

// A consumer warpgroup: a round has an even tile, which EVEN scores, and an odd one, whose weights
// refer to maxima that are not lower. An item's last odd tile may be empty.
template <uint32_t role>
struct Multiplier {
    Shared& shared;
    Weigher<role> weigher;
    Sums o;
    Scorer<role> scorer;

    __device__ __forceinline__ void reset() {
#pragma unroll
        for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) {
#pragma unroll
            for (uint32_t i = 0; i < 4 * BLOCKS; ++i) o[mma][i] = 0;
        }
    }

    // Add a tile whose weights are published, and release this warpgroup's half of it.
    __device__ __forceinline__ void add_tile(uint32_t tile, uint32_t number) {
        const uint32_t stage = stage_of(tile, number);
        add(o, shared, Places(shared), stage, role, tile);
        arrive(shared.free[stage][role]);
    }

    // Wait for the other warpgroup's weights, and adopt their maxima.
    __device__ __forceinline__ void take_over(uint32_t tile, uint32_t number) {
        ptx::mbarrier_wait(at(shared.weighed[tile]), number % 2);
        weigher.take_over(o, tile);
    }

    // ODD's maxima are not lower than EVEN's, so it weighs after EVEN has; at once, as EVEN waits
    // for its weights.
    __device__ __forceinline__ void weigh(uint32_t number, bool is_last) {
        Scores s;
        scorer.end(s, shared, number);
        if (HAS_ROPE) arrive(shared.free[stage_of(role, number)][ROPE]);
        if (!QUANTISES && is_last) arrive(shared.q_free);
        if (role == ODD) take_over(EVEN, number);
        weigher.weigh(s, number, [&] {
            if (role == EVEN && number > 0) await_even_added(number - 1);
        });
    }

    // Add both tiles. The outputs are rescaled to the maxima of each tile's weights: ODD's begin
    // with EVEN's maxima.
    __device__ __forceinline__ void add_both(uint32_t number) {
        if (role == EVEN) {
            weigher.rescale(o);
            ptx::mbarrier_wait(at(shared.weighed[EVEN]), number % 2);  // by all four warps
            add_tile(EVEN, number);
            take_over(ODD, number);
        } else {
            add_tile(EVEN, number);
            weigher.rescale(o);
            ptx::mbarrier_wait(at(shared.weighed[ODD]), number % 2);
        }
        add_tile(ODD, number);
    }

    // An item's rounds. Paths with pending MMAs do not join others (ptxas), so the last round's
    // values have separate code.
    __device__ __forceinline__ void all_rounds(uint32_t& number, uint32_t rounds) {
        scorer.begin(shared, number);
        for (uint32_t round = 1; SCORES_AHEAD ? round < rounds : round <= rounds; ++round) {
            weigh(number, !SCORES_AHEAD && round == rounds);
            scorer.begin(shared, number + 1);
            add_both(number++);
        }
        if (!SCORES_AHEAD) return;
        weigh(number, true);
        add_both(number++);
    }

    // Wait until ODD has added the even tile of a round, and so released its half of the columns:
    // EVEN may then write the weights of its next tile.
    __device__ __forceinline__ void await_even_added(uint32_t number) {
        ptx::mbarrier_wait(at(shared.free[stage_of(EVEN, number)][ODD]), phase_of(number));
    }
};
