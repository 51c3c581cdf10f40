// V's columns as rows of A: 64 of them, by 32 keys. Pairs of neighbouring columns are transposed as
// one 16-bit element (ldmatrix.trans) and then separated: column 2i is row i of a warp's sixteen,
// column 2i + 1 row i + 8; keys come in the order of `store_weights`.
__device__ __forceinline__ void load_values(uint32_t (&a)[4], uint32_t from) {
    constexpr uint32_t EVEN_BYTES = 0x6240, ODD_BYTES = 0x7351;
    uint32_t pairs[4];
    ptx::load_transposed(pairs, from);
    a[0] = __byte_perm(pairs[0], pairs[1], EVEN_BYTES);
    a[1] = __byte_perm(pairs[0], pairs[1], ODD_BYTES);
    a[2] = __byte_perm(pairs[2], pairs[3], EVEN_BYTES);
    a[3] = __byte_perm(pairs[2], pairs[3], ODD_BYTES);
}

// A lane's place for that in a panel: a key's sixteen columns of its warp. The panel's other 64
// columns are VALUE_ROWS bytes further, which is one bit of the swizzled address.
__device__ __forceinline__ uint32_t place_of_values() {
    const uint32_t thread = thread_now(), key = thread % 32;
    return key * SPAN_BYTES + (thread / 32 ^ key % 8) * 16;
}

constexpr uint32_t MMA_KEYS = 32, VALUE_STEPS = KEYS / MMA_KEYS;
static_assert(VALUE_STEPS <= CHAIN);

// Heads whose values are multiplied at a time, and how many such MMAs there are for a tile.
constexpr uint32_t VALUE_HEADS = HEADS < 32 ? HEADS : 32, PARTS_OF_HEADS = HEADS / VALUE_HEADS;
constexpr uint32_t VALUE_CHAINS = VALUE_MMAS * PARTS_OF_HEADS;
constexpr uint32_t VALUES_UNDER_WAY = SCORES_AHEAD ? VALUE_CHAINS : 2;

// Add the values of a tile, in this warpgroup's half of the columns.
__device__ __forceinline__ void add(Sums& o, Shared& shared, const Places& places, uint32_t stage,
                                    uint32_t half, uint32_t tile) {
    const uint32_t panels = at(shared.k[stage][half * HALF_PANELS]), place = place_of_values();
    constexpr uint32_t UNDER_WAY = VALUES_UNDER_WAY, COUNT = VALUE_HEADS / 2;
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
            ptx::wgmma_fence_operand(values);
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
