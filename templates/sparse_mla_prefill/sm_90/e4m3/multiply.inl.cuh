// Wait for the part of a tile that begins at a number. A fence takes longer than some MMAs, so one
// is to serve as many parts as are there.
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

// Multiply a tile's rows by Q. MMAs of one shape alone add to the same sums in order; those of
// rope in bf16 are waited for.
template <uint32_t tile>
__device__ __forceinline__ void score(Scores& s, Shared& shared, const Places& places,
                                      uint32_t number) {
    Arrivals arrivals{shared, tile, number};
#pragma unroll
    for (uint32_t i = 0; i < PANELS; ++i) {
        const uint32_t panel = panel_at(tile, i);
        const uint32_t k = places.k(stage_of(tile, number), panel), q = places.codes(panel);
        if (begins_part(tile, i)) {
            arrivals.wait(i);
            ptx::wgmma_hold(s);
            ptx::wgmma_fence();
        }
#pragma unroll
        for (uint32_t step = 0; step < 16 * chunks_of(panel) / STEP_BYTES; ++step) {
            const uint32_t further = step * STEP_BYTES >> 4;
            if (ROPE_IS_BF16 && panel == V_PANELS) {
                multiply_rope<TILE_LAYOUT, TILE_LAYOUT>(s, k + further, q + further, step > 0);
            } else {
                multiply_scores<TILE_LAYOUT, TILE_LAYOUT>(s, k + further, q + further,
                                                          i > 0 || step > 0);
            }
        }
        if (ROPE_IS_BF16 && panel == V_PANELS) {
            ptx::wgmma_commit();
            ptx::wgmma_wait<0>();
        }
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::wgmma_hold(s);
}

// V's columns as rows of A: 64 of them, by 32 keys from `first` on, out of a panel of a tile. Pairs
// of neighbouring columns are transposed as one element and then taken apart: column 2i is row i of
// a warp's sixteen, column 2i + 1 row i + 8; keys come in the order of `store_weights`.
__device__ __forceinline__ void load_values(uint32_t (&a)[4], uint32_t panel, uint32_t column,
                                            uint32_t first) {
    constexpr uint32_t EVEN_BYTES = 0x6240, ODD_BYTES = 0x7351;
    const uint32_t key = first + threadIdx.x % 32, chunk = column / 16 + threadIdx.x % 128 / 32;
    uint32_t pairs[4];
    ptx::load_transposed(pairs, panel + key * SPAN_BYTES + (chunk ^ key % 8) * 16);
    a[0] = __byte_perm(pairs[0], pairs[1], EVEN_BYTES);
    a[1] = __byte_perm(pairs[0], pairs[1], ODD_BYTES);
    a[2] = __byte_perm(pairs[2], pairs[3], EVEN_BYTES);
    a[3] = __byte_perm(pairs[2], pairs[3], ODD_BYTES);
}


constexpr uint32_t MMA_KEYS = 32, VALUE_STEPS = KEYS / MMA_KEYS;
constexpr uint32_t VALUE_GROUPS = HEADS <= 32 ? 1 : VALUE_STEPS;  // waited for one by one
using Values = uint32_t[VALUE_STEPS / VALUE_GROUPS][VALUE_MMAS][4];

// Half of V's columns of a tile's keys from `first` on.
__device__ __forceinline__ void load_values(Values& a, Shared& shared, uint32_t stage,
                                            uint32_t half, uint32_t first) {
#pragma unroll
    for (uint32_t step = 0; step < VALUE_STEPS / VALUE_GROUPS; ++step) {
#pragma unroll
        for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) {
            const uint32_t column = half * HALF + mma * VALUE_ROWS;
            load_values(a[step][mma], at(shared.k[stage][column / PANEL_COLUMNS]),
                        column % PANEL_COLUMNS, first + step * MMA_KEYS);
        }
    }
}

// Add the values of a tile's keys from `first` on, which are in registers.
__device__ __forceinline__ void add(Sums& o, Values& a, const Places& places, uint32_t tile,
                                    uint32_t first) {
#pragma unroll
    for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) {
        ptx::wgmma_hold(o[mma]);
#pragma unroll
        for (uint32_t step = 0; step < VALUE_STEPS / VALUE_GROUPS; ++step) {
            ptx::wgmma_hold(a[step][mma]);
        }
    }
    ptx::wgmma_fence();
#pragma unroll
    for (uint32_t step = 0; step < VALUE_STEPS / VALUE_GROUPS; ++step) {
        const uint32_t p = places.weights(tile) + ((first + step * MMA_KEYS) >> 4);
#pragma unroll
        for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) {
            multiply_values<TILE_LAYOUT>(o[mma], a[step][mma], p, true);
        }
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
#pragma unroll
    for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) ptx::wgmma_hold(o[mma]);
}

// A warpgroup that multiplies: a round's even tile, which EVEN scores, and its odd one, whose
// weights refer to maxima that are not lower. An item's last odd tile may be empty.
template <uint32_t role>
struct Multiplier {
    Shared& shared;
    Weigher<role> weigher;
    Sums o;

    __device__ __forceinline__ void reset() {
        weigher.reset();
#pragma unroll
        for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) {
#pragma unroll
            for (uint32_t i = 0; i < 4 * BLOCKS; ++i) o[mma][i] = 0;
        }
    }

    // Add a tile once its weights are there, and give this warpgroup's half of it back.
    __device__ __forceinline__ void add_tile(const Places& places, uint32_t tile, uint32_t number) {
        const uint32_t stage = stage_of(tile, number);
        Values values;
        ptx::mbarrier_wait(at(shared.weighed[tile]), number % 2);
        load_values(values, shared, stage, role, 0);
        if (tile != role) weigher.take_over(o, tile);
        add(o, values, places, tile, 0);
        if (VALUE_GROUPS == 2) {
            load_values(values, shared, stage, role, MMA_KEYS);
            add(o, values, places, tile, MMA_KEYS);
        }
        arrive_as_warp(shared.free[stage][role]);
    }

    __device__ __forceinline__ void round(uint32_t number, bool is_last) {
        const Places places(shared);
        Scores s;
        score<role>(s, shared, places, number);
        if (HAS_ROPE) arrive_as_warp(shared.free[stage_of(role, number)][ROPE]);
        if (!QUANTISES && is_last) arrive_as_warp(shared.q_free);
        if (role == EVEN) weigher.weigh(o, s, number);
        add_tile(places, EVEN, number);
        if (role == ODD) weigher.weigh(o, s, number);  // sums leave the even maxima no sooner
        add_tile(places, ODD, number);
    }
};

template <uint32_t role>
__device__ __forceinline__ void multiply(Shared& shared, const Work& work, const Queries& queries,
                                         const Softmax& softmax, const Outputs& outputs) {
    Multiplier<role> multiplier{shared, {shared, queries, softmax}};
    uint32_t number = 0, items = 0;
    for (Item item(work); item.exists(work); item = item.after(work)) {
        multiplier.reset();
        if (item.rounds > 0) {
            ptx::mbarrier_wait(at(shared.q_full), items % 2);
            multiplier.weigher.begin(item, items++);
            for (uint32_t round = 1; round <= item.rounds; ++round) {
                multiplier.round(number++, round == item.rounds);
            }
            multiplier.weigher.join();
        }
        multiplier.weigher.store(outputs, item, multiplier.o);
    }
}
