// Shared memory of the Hopper kernels: tiles in panels of 64 columns, rows of 128 bytes, one
// swizzle span. A tile of K has panels of three kinds: the left half of V's columns, the right
// half, and rope, which V does not have.
constexpr uint32_t PANEL_COLUMNS = 64;
constexpr uint32_t SPAN_BYTES = 128;
constexpr uint32_t PANEL_BYTES = KEYS * SPAN_BYTES;
constexpr uint32_t PANELS = DEPTH / PANEL_COLUMNS;
constexpr uint32_t Q_PANELS = PANELS, Q_PANEL_COLUMNS = PANEL_COLUMNS;
constexpr uint32_t V_PANELS = LATENT / PANEL_COLUMNS;
constexpr uint32_t HALF_PANELS = V_PANELS / 2;
constexpr uint32_t HALF = LATENT / 2;  // columns of V of one warpgroup
constexpr bool HAS_ROPE = DEPTH > LATENT;
constexpr uint32_t STEPS = 4;  // MMAs along K in a panel, or along the keys of a tile
constexpr uint32_t STEP_BYTES = 32;  // along a swizzled row
constexpr uint32_t STEP_KEYS_BYTES = 16 * SPAN_BYTES;

static_assert(HEADS == KEYS, "a tile of heads is as high as one of keys");
static_assert(PANELS == V_PANELS + HAS_ROPE);

// The consumer warpgroups. EVEN scores tiles 0, 2, .. and has V's left half; ODD the others.
constexpr uint32_t EVEN = 0, ODD = 1, GATHER = 2;
constexpr uint32_t THREADS = 384;
constexpr uint32_t WARPS = 4;  // of a warpgroup
constexpr uint32_t GROUP_THREADS = 32 * WARPS;
constexpr uint32_t GATHER_THREADS = 128;
constexpr bool IS_COPIED = {{ "false" if WIDENS else "true" }};  // rows are copied unchanged
constexpr bool COPIES_ROPE = {{ "true" if not WIDENS or ROW == "fp8_656" else "false" }};

// The producer fills a tile part by part, each with its own barriers, in the order of scoring,
// which is also the order in which the previous tile is released. Even tiles: rope first, then
// quarters of V's columns. Odd tiles: the right half first and rope last, because rope's place also
// holds the odd tile's weights, which EVEN reads.
constexpr uint32_t PART_PANELS = 2;
constexpr uint32_t QUARTERS = V_PANELS / PART_PANELS;
constexpr uint32_t QUARTER = LATENT / QUARTERS;  // columns
constexpr uint32_t PARTS = HAS_ROPE + QUARTERS;
constexpr uint32_t ROPE = QUARTERS;  // the part of a tile that is no quarter
enum Half : uint32_t { LEFT, RIGHT };

// The panel of a tile that is filled, and scored, after `number` others.
__device__ __forceinline__ constexpr uint32_t panel_at(uint32_t tile, uint32_t number) {
    if (tile == ODD) return number < V_PANELS ? number ^ HALF_PANELS : number;
    return !HAS_ROPE ? number : number == 0 ? V_PANELS : number - 1;
}

// The part that is filled after `number` others.
__device__ __forceinline__ constexpr uint32_t part_at(uint32_t tile, uint32_t number) {
    if (tile == ODD) return number < QUARTERS ? number ^ QUARTERS / 2 : number;
    return !HAS_ROPE ? number : number == 0 ? ROPE : number - 1;
}

__device__ __forceinline__ constexpr uint32_t part_of(uint32_t panel) {
    return panel / PART_PANELS;
}

__device__ __forceinline__ constexpr bool begins_part(uint32_t tile, uint32_t number) {
    return number == 0 || part_of(panel_at(tile, number)) != part_of(panel_at(tile, number - 1));
}

// The part with which consumers release the place of the part to be filled.
__device__ __forceinline__ constexpr uint32_t freed_with(uint32_t tile, uint32_t part) {
    return part == ROPE && tile == ODD ? QUARTERS / 2 - 1 : part;
}

// Arrivals that fill a part: of the threads that copied it, or dequantised it. A quarter is one
// warp's; each warp has a share of rope. In a pair, the sending thread arrives once more.
__device__ __forceinline__ constexpr uint32_t fillers(uint32_t part) {
    if (IS_COPIED || (COPIES_ROPE && part == ROPE)) return GATHER_THREADS;
    return (part == ROPE ? WARPS : 1) * (32 + (CTAS > 1 ? 1 : 0));
}

// What a warpgroup publishes to the other: with its weights the maximum that they refer to, a row
// each; at the end of an item its share of the sums of weights, exact and rounded, and of the
// highest scores.
struct Published {
    float maximum[HEADS], sum[HEADS], rounded[HEADS], highest[HEADS];
};

struct Shared {
    unsigned char q[PANELS][PANEL_BYTES];
    unsigned char k[2][PANELS][PANEL_BYTES];  // the even tile and the odd
    unsigned char weights[HAS_ROPE ? 1 : 2][PANEL_BYTES];  // with rope, the odd tile's lie there
    Published published[2];
    uint16_t counts[2][2][WARPS];  // [tile][its number % 2]: bits of the valid keys
    uint64_t q_full, q_free;
    uint64_t full[2][PARTS], free[2][PARTS];
{% if WIDENS %}    uint64_t landed[2][2][WARPS];  // [tile][of rope]: a warp's codes are there
{% endif %}    uint64_t weighed[2];  // weights and what goes with them are published
    uint64_t scoring;  // all MMAs of the even tile's scores are issued; the odd tile's may follow
    uint64_t sent;  // in a pair: the other CTA has what this one sent of the odd tile

    __device__ __forceinline__ unsigned char* weights_of(uint32_t tile) {
        return HAS_ROPE && tile == ODD ? k[ODD][V_PANELS] : weights[HAS_ROPE ? 0 : tile];
    }
};
static_assert(sizeof(Shared) <= SHARED_BYTES);

// Barrier of both consumer warpgroups.
__device__ __forceinline__ void meet_both() { ptx::barrier_sync_unaligned(3, 2 * GROUP_THREADS); }

// Barrier of this warpgroup: its MMAs' operands may be overwritten once all warps are done.
__device__ __forceinline__ void meet_warpgroup() {
    ptx::barrier_sync(1 + threadIdx.x / 128, GROUP_THREADS);
}

template <typename T>
__device__ __forceinline__ uint32_t at(const T& place) {
    return ptx::shared_address(&place);
}

// Low halves of matrix descriptors: one base for all of shared memory plus constants. Otherwise the
// compiler computes each descriptor from its address, and keeps them all in registers.
struct Places {
    uint32_t first;

    __device__ __forceinline__ explicit Places(Shared& shared)
        : first(ptx::uniform(ptx::wgmma_descriptor_low(at(shared)))) {}

    __device__ __forceinline__ uint32_t q(uint32_t panel) const {
        return first + ((offsetof(Shared, q) + panel * PANEL_BYTES) >> 4);
    }
    __device__ __forceinline__ uint32_t k(uint32_t tile, uint32_t panel) const {
        return first + ((offsetof(Shared, k) + (tile * PANELS + panel) * PANEL_BYTES) >> 4);
    }
    __device__ __forceinline__ uint32_t weights(uint32_t tile) const {
        if (HAS_ROPE && tile == ODD) return k(ODD, V_PANELS);
        return first + ((offsetof(Shared, weights) + tile * PANEL_BYTES) >> 4);
    }
};

// One thread initialises the barriers. A part is full when each producer thread's copies are done,
// the first one when each producer warp has also written its bits; or when each thread has stored
// its dequantised values and both CTAs of a pair have sent their halves. It is free when each
// thread of the warpgroup that reads it last has arrived, in both CTAs.
__device__ __forceinline__ void init_barriers(Shared& shared) {
    ptx::mbarrier_init(at(shared.q_full), 1);
    ptx::mbarrier_init(at(shared.q_free), 2 * GROUP_THREADS);
    for (uint32_t tile = 0; tile < 2; ++tile) {
        for (uint32_t part = 0; part < PARTS; ++part) {
            const bool has_bits = IS_COPIED && part == part_of(panel_at(tile, 0));
            ptx::mbarrier_init(at(shared.full[tile][part]), fillers(part) + has_bits * WARPS);
            ptx::mbarrier_init(at(shared.free[tile][part]), CTAS * GROUP_THREADS);
        }
        ptx::mbarrier_init(at(shared.weighed[tile]), GROUP_THREADS);
{% if WIDENS %}        for (uint32_t warp = 0; warp < WARPS; ++warp) {
            ptx::mbarrier_init(at(shared.landed[tile][0][warp]), 32);
            ptx::mbarrier_init(at(shared.landed[tile][1][warp]), 32);
        }
{% endif %}    }
    ptx::mbarrier_init(at(shared.scoring), GROUP_THREADS);
    if (CTAS > 1) ptx::mbarrier_init(at(shared.sent), 1);
    ptx::fence_mbarrier_init();
}

// Release something that all threads of the warpgroup read. Each thread arrives for itself:
// racecheck follows threads, and one lane that arrives for its warp is no faster.
__device__ __forceinline__ void arrive(uint64_t& barrier) { ptx::mbarrier_arrive(at(barrier)); }

__device__ __forceinline__ void arrive_if(bool condition, uint64_t& barrier) {
    ptx::mbarrier_arrive_if(condition, at(barrier));
}

// Release a part of a tile. A pair's CTAs both fill it, so the thread arrives in both.
__device__ __forceinline__ void free_part(Shared& shared, uint32_t tile, uint32_t part) {
    const uint32_t free = at(shared.free[tile][part]);
    if (CTAS == 1) return ptx::mbarrier_arrive(free);
#pragma unroll
    for (uint32_t to = 0; to < CTAS; ++to) ptx::mbarrier_arrive_cluster(ptx::map_shared(free, to));
}

// The address in the other CTA of a pair.
__device__ __forceinline__ uint32_t in_other(uint32_t address) {
    return ptx::map_shared(address, blockIdx.x % CTAS ^ 1);
}

// ODD has waited for its whole tile, so it has the data of the other CTA: acknowledge it to the
// sender.
__device__ __forceinline__ void acknowledge_sender(Shared& shared) {
    if (threadIdx.x % 128 == 0) ptx::mbarrier_arrive_cluster(in_other(at(shared.sent)));
}
