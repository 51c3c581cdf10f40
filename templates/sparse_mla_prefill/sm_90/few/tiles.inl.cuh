// Shared memory of the Hopper kernels: tiles in panels of 64 columns, rows of 128 bytes, one
// swizzle span. A tile of K has panels of three kinds: the left half of V's columns, the right
// half, and rope, which V does not have.
constexpr uint32_t PANEL_COLUMNS = 64;
constexpr uint32_t SPAN_BYTES = 128;
constexpr uint32_t PANEL_BYTES = KEYS * SPAN_BYTES;
constexpr uint32_t Q_PANEL_BYTES = HEADS * SPAN_BYTES;
constexpr uint32_t PANELS = DEPTH / PANEL_COLUMNS;
constexpr uint32_t Q_PANELS = PANELS, Q_PANEL_COLUMNS = PANEL_COLUMNS;
constexpr uint32_t V_PANELS = LATENT / PANEL_COLUMNS;
constexpr uint32_t HALF_PANELS = V_PANELS / 2;
constexpr uint32_t HALF = LATENT / 2;  // columns of V of one warpgroup
constexpr bool HAS_ROPE = DEPTH > LATENT;
constexpr uint32_t STEPS = 4;  // MMAs along K in a panel, or along the keys of a tile
constexpr uint32_t STEP_BYTES = 32;  // along a swizzled row
constexpr uint32_t STEP_KEYS_BYTES = 16 * SPAN_BYTES;
constexpr uint32_t BLOCKS = HEADS / 8;  // of eight heads, of which a thread has two

static_assert(HEADS % 8 == 0 && HEADS <= 32, "more heads fill the rows of an MMA");
static_assert(PANELS == V_PANELS + HAS_ROPE);

// The consumer warpgroups. EVEN scores tiles 0, 2, .. and has V's left half; ODD the others.
constexpr uint32_t EVEN = 0, ODD = 1, GATHER = 2;
constexpr uint32_t THREADS = 384;
constexpr uint32_t WARPS = 4;  // of a warpgroup
constexpr uint32_t GROUP_THREADS = 32 * WARPS;
constexpr uint32_t GATHER_THREADS = 128;
constexpr bool IS_COPIED = {{ "false" if WIDENS else "true" }};  // rows are copied unchanged
constexpr bool COPIES_ROPE = {{ "true" if not WIDENS or ROW == "fp8_656" else "false" }};

// The producer fills a tile part by part, each with its own barriers, in the order of scoring. The
// consumers release it in parts: rope by the warpgroup that scored it, each half of V's columns by
// the warpgroup that has it.
constexpr uint32_t PART_PANELS = 2;
constexpr uint32_t QUARTERS = V_PANELS / PART_PANELS;
constexpr uint32_t PARTS = HAS_ROPE + QUARTERS;
constexpr uint32_t QUARTER = LATENT / QUARTERS;  // columns
constexpr uint32_t ROPE = QUARTERS;  // the part of a tile that is no quarter

// The panel of a tile that is filled, and scored, after `number` others.
__device__ __forceinline__ constexpr uint32_t panel_at(uint32_t, uint32_t number) {
    return !HAS_ROPE ? number : number == 0 ? V_PANELS : number - 1;
}

// The part that is filled after `number` others.
__device__ __forceinline__ constexpr uint32_t part_at(uint32_t, uint32_t number) {
    return !HAS_ROPE ? number : number == 0 ? ROPE : number - 1;
}

__device__ __forceinline__ constexpr uint32_t part_of(uint32_t panel) {
    return panel / PART_PANELS;
}

__device__ __forceinline__ constexpr bool begins_part(uint32_t tile, uint32_t number) {
    return number == 0 || part_of(panel_at(tile, number)) != part_of(panel_at(tile, number - 1));
}

__device__ __forceinline__ constexpr uint32_t freed_with(uint32_t, uint32_t part) { return part; }

// Arrivals that fill a part: of the threads that copied it, or dequantised it. A quarter is one
// warp's; each warp has a share of rope.
__device__ __forceinline__ constexpr uint32_t fillers(uint32_t part) {
    if (IS_COPIED || (COPIES_ROPE && part == ROPE)) return GATHER_THREADS;
    return (part == ROPE ? WARPS : 1) * 32;
}

// What a warpgroup publishes to the other: with its weights the maximum that they refer to, a head
// each; at the end of an item, for each warp's keys, the sums of weights and the highest scores.
struct Published {
    float maximum[HEADS], sum[WARPS][HEADS], rounded[WARPS][HEADS], highest[WARPS][HEADS];
};

// Outputs on their way, a head a row; eight elements to spare, so that heads lie in other banks.
constexpr uint32_t STAGED_ROW_BYTES = 2 * LATENT + 16;

struct Shared {
    unsigned char q[PANELS][Q_PANEL_BYTES];
    unsigned char k[2][PANELS][PANEL_BYTES];  // the even tile and the odd
    unsigned char weights[2][Q_PANEL_BYTES];  // of a tile: a head a row
    unsigned char staged[HEADS][STAGED_ROW_BYTES];
    Published published[2];
    float most[2][WARPS][HEADS];  // of a warpgroup's tile, the highest score of each warp's keys
    uint16_t counts[2][2][WARPS];  // [tile][its number % 2]: bits of the valid keys
    uint64_t q_full, q_free;
    uint64_t full[2][PARTS], free[2][PARTS];
{% if WIDENS %}    uint64_t landed[2][2][WARPS];  // [tile][of rope]: a warp's codes are there
{% endif %}    uint64_t weighed[2];  // weights and what goes with them are published
};
static_assert(sizeof(Shared) <= SHARED_BYTES);
static_assert(Q_PANEL_BYTES % 1024 == 0, "swizzled tiles begin at 1024-byte boundaries");

__device__ __forceinline__ void meet_both() { ptx::barrier_sync_unaligned(3, 2 * GROUP_THREADS); }

__device__ __forceinline__ void meet_warpgroup() {
    ptx::barrier_sync(1 + threadIdx.x / 128, GROUP_THREADS);
}

__device__ __forceinline__ bool any_of_warpgroup(bool condition) {
    return ptx::barrier_any(1 + threadIdx.x / 128, GROUP_THREADS, condition);
}

template <typename T>
__device__ __forceinline__ uint32_t at(const T& place) {
    return ptx::shared_address(&place);
}

// Low halves of matrix descriptors: one base for all of shared memory plus constants.
struct Places {
    uint32_t first;

    __device__ __forceinline__ explicit Places(Shared& shared)
        : first(ptx::uniform(ptx::wgmma_descriptor_low(at(shared)))) {}

    __device__ __forceinline__ uint32_t q(uint32_t panel) const {
        return first + ((offsetof(Shared, q) + panel * Q_PANEL_BYTES) >> 4);
    }
    __device__ __forceinline__ uint32_t k(uint32_t tile, uint32_t panel) const {
        return first + ((offsetof(Shared, k) + (tile * PANELS + panel) * PANEL_BYTES) >> 4);
    }
    __device__ __forceinline__ uint32_t weights(uint32_t tile) const {
        return first + ((offsetof(Shared, weights) + tile * Q_PANEL_BYTES) >> 4);
    }
};

// One thread initialises the barriers. A part is full when each producer thread's copies are done,
// the first one when each producer warp has also written its bits; or when each thread has stored
// its dequantised values. It is free when each thread of the warpgroup that reads it last has
// arrived.
__device__ __forceinline__ void init_barriers(Shared& shared) {
    ptx::mbarrier_init(at(shared.q_full), 1);
    ptx::mbarrier_init(at(shared.q_free), 2 * GROUP_THREADS);
    for (uint32_t tile = 0; tile < 2; ++tile) {
        for (uint32_t part = 0; part < PARTS; ++part) {
            const bool has_bits = IS_COPIED && part == part_of(panel_at(tile, 0));
            ptx::mbarrier_init(at(shared.full[tile][part]), fillers(part) + has_bits * WARPS);
            ptx::mbarrier_init(at(shared.free[tile][part]), GROUP_THREADS);
        }
        ptx::mbarrier_init(at(shared.weighed[tile]), GROUP_THREADS);
{% if WIDENS %}        for (uint32_t warp = 0; warp < WARPS; ++warp) {
            ptx::mbarrier_init(at(shared.landed[tile][0][warp]), 32);
            ptx::mbarrier_init(at(shared.landed[tile][1][warp]), 32);
        }
{% endif %}    }
    ptx::fence_mbarrier_init();
}

// Release something that all threads of the warpgroup read. Each thread arrives for itself:
// racecheck follows threads, and one lane that arrives for its warp is no faster.
__device__ __forceinline__ void arrive(uint64_t& barrier) { ptx::mbarrier_arrive(at(barrier)); }
