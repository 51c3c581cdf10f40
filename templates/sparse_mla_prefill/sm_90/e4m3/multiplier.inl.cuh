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

// A tensor core of Hopper aligns products of e4m3, and what they are added to, to the largest, keeps
// 13 bits below that, and gives a sum of 13. So no more than CHAIN MMAs add to the same sums; these
// are then added up here, in fp32. Some are under way, each in registers that it keeps.
constexpr uint32_t CHAIN = 2;
constexpr uint32_t CHAINS = HEADS <= 32 ? 2 : 1;  // under way

template <uint32_t count, uint32_t size>
__device__ __forceinline__ void clear(float (&sums)[count][size]) {
#pragma unroll
    for (uint32_t i = 0; i < count; ++i) {
#pragma unroll
        for (uint32_t j = 0; j < size; ++j) sums[i][j] = 0;
        ptx::wgmma_hold(sums[i]);
    }
}

// Add sums to others, at once.
template <uint32_t count>
__device__ __forceinline__ void add_sums(float* to, float (&sums)[count]) {
    ptx::wgmma_hold(sums);
#pragma unroll
    for (uint32_t i = 0; i < count; ++i) to[i] += sums[i];
    ptx::wgmma_hold(sums);
}

__device__ __forceinline__ constexpr uint32_t steps_of(uint32_t panel) {
    return 16 * chunks_of(panel) / STEP_BYTES;
}

// Rope of bf16, which the tensor core adds up in fp32.
__device__ __forceinline__ void score_rope(Scores& s, uint32_t k, uint32_t q) {
    ptx::wgmma_hold(s);
    ptx::wgmma_fence();
#pragma unroll
    for (uint32_t step = 0; step < steps_of(V_PANELS); ++step) {
        const uint32_t further = step * STEP_BYTES >> 4;
        multiply_rope<TILE_LAYOUT, TILE_LAYOUT>(s, k + further, q + further, step > 0);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::wgmma_hold(s);
}

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

// V's columns as rows of A: 64 of them, by 32 keys. Pairs of neighbouring columns are transposed as
// one element and then taken apart: column 2i is row i of a warp's sixteen, column 2i + 1 row i + 8;
// keys come in the order of `store_weights`.
__device__ __forceinline__ void load_values(uint32_t (&a)[4], uint32_t from) {
    constexpr uint32_t EVEN_BYTES = 0x6240, ODD_BYTES = 0x7351;
    uint32_t pairs[4];
    ptx::load_transposed(pairs, from);
    a[0] = __byte_perm(pairs[0], pairs[1], EVEN_BYTES);
    a[1] = __byte_perm(pairs[0], pairs[1], ODD_BYTES);
    a[2] = __byte_perm(pairs[2], pairs[3], EVEN_BYTES);
    a[3] = __byte_perm(pairs[2], pairs[3], ODD_BYTES);
}

// Where a lane reads for that, in a panel: a key's sixteen columns of its warp. The panel's other 64
// columns are VALUE_ROWS bytes further, which swizzled rows turn into a bit.
__device__ __forceinline__ uint32_t place_of_values() {
    const uint32_t thread = thread_now(), key = thread % 32;
    return key * SPAN_BYTES + (thread / 32 ^ key % 8) * 16;
}

constexpr uint32_t MMA_KEYS = 32, VALUE_STEPS = KEYS / MMA_KEYS;
static_assert(VALUE_STEPS <= CHAIN);

// Heads whose values are multiplied at a time, and how many such MMAs there are for a tile.
constexpr uint32_t VALUE_HEADS = HEADS < 32 ? HEADS : 32, PARTS_OF_HEADS = HEADS / VALUE_HEADS;
constexpr uint32_t VALUE_CHAINS = VALUE_MMAS * PARTS_OF_HEADS;

// Add the values of a tile, in this warpgroup's half of the columns.
__device__ __forceinline__ void add(Sums& o, Shared& shared, const Places& places, uint32_t stage,
                                    uint32_t half, uint32_t tile) {
    const uint32_t panels = at(shared.k[stage][half * HALF_PANELS]), place = place_of_values();
    constexpr uint32_t UNDER_WAY = 2, COUNT = VALUE_HEADS / 2;
    float chains[UNDER_WAY][COUNT];
    uint32_t a[UNDER_WAY][VALUE_STEPS][4];
    clear(chains);
    const auto take = [&](uint32_t number) {
        add_sums(o[number / PARTS_OF_HEADS] + number % PARTS_OF_HEADS * COUNT,
                 chains[number % UNDER_WAY]);
    };
#pragma unroll
    for (uint32_t i = 0; i < VALUE_CHAINS; ++i) {
        const uint32_t mma = i / PARTS_OF_HEADS, part = i % PARTS_OF_HEADS;
        const uint32_t panel = mma * VALUE_ROWS / PANEL_COLUMNS;
        const uint32_t from =
            panels + panel * PANEL_BYTES + (place ^ mma * VALUE_ROWS % PANEL_COLUMNS);
        if (i >= UNDER_WAY) {
            ptx::wgmma_wait<UNDER_WAY - 1>();
            take(i - UNDER_WAY);
        }
#pragma unroll
        for (uint32_t step = 0; step < VALUE_STEPS; ++step) {
            uint32_t(&values)[4] = a[mma % UNDER_WAY][step];
            if (part == 0) load_values(values, from + step * MMA_KEYS * SPAN_BYTES);
            ptx::wgmma_hold(values);
        }
        ptx::wgmma_fence();
#pragma unroll
        for (uint32_t step = 0; step < VALUE_STEPS; ++step) {
            const uint32_t heads = part * VALUE_HEADS * SPAN_BYTES;
            const uint32_t p = places.weights(tile) + ((heads + step * MMA_KEYS) >> 4);
            multiply_values<TILE_LAYOUT>(chains[i % UNDER_WAY], a[mma % UNDER_WAY][step], p,
                                         step > 0);
        }
        ptx::wgmma_commit();
    }
    ptx::wgmma_wait<0>();
#pragma unroll
    for (uint32_t i = VALUE_CHAINS - UNDER_WAY; i < VALUE_CHAINS; ++i) take(i);
}

// A warpgroup that multiplies: a round's even tile, which EVEN scores, and its odd one, whose
// weights refer to maxima that are not lower. An item's last odd tile may be empty.
template <uint32_t role>
struct Multiplier {
    Shared& shared;
    Weigher<role> weigher;
    Sums o;

    __device__ __forceinline__ void reset() {
#pragma unroll
        for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) {
#pragma unroll
            for (uint32_t i = 0; i < 4 * BLOCKS; ++i) o[mma][i] = 0;
        }
    }

    // Add a tile whose weights are there, and give this warpgroup's half of it back.
    __device__ __forceinline__ void add_tile(uint32_t tile, uint32_t number) {
        const uint32_t stage = stage_of(tile, number);
        add(o, shared, Places(shared), stage, role, tile);
        arrive(shared.free[stage][role]);
    }

    // Wait for the other warpgroup's weights, and follow their maxima.
    __device__ __forceinline__ void take_over(uint32_t tile, uint32_t number) {
        ptx::mbarrier_wait(at(shared.weighed[tile]), number % 2);
        weigher.take_over(o, tile);
    }

    // ODD's maxima are not lower than EVEN's, so it weighs after EVEN has; at once, as EVEN waits
    // for its weights. Its sums of outputs follow later: they begin with what EVEN's maxima weigh.
    __device__ __forceinline__ void round(uint32_t number, bool is_last) {
        Scores s;
        score<role>(s, shared, Places(shared), number);
        if (HAS_ROPE) arrive(shared.free[stage_of(role, number)][ROPE]);
        if (!QUANTISES && is_last) arrive(shared.q_free);
        if (role == EVEN) {
            if (number > 0) await_even_added(number - 1);
            weigher.weigh(s, number);
            weigher.rescale(o);
            ptx::mbarrier_wait(at(shared.weighed[EVEN]), number % 2);  // by all four warps
            add_tile(EVEN, number);
            take_over(ODD, number);
        } else {
            take_over(EVEN, number);
            weigher.weigh(s, number);
            add_tile(EVEN, number);
            weigher.rescale(o);
            ptx::mbarrier_wait(at(shared.weighed[ODD]), number % 2);
        }
        add_tile(ODD, number);
    }

    // ODD has added the even tile of a round, so that EVEN may write the weights of its next one: it
    // has given its half of the columns back.
    __device__ __forceinline__ void await_even_added(uint32_t number) {
        ptx::mbarrier_wait(at(shared.free[stage_of(EVEN, number)][ODD]), phase_of(number));
    }
};
