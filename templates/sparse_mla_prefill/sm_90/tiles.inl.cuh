// Tiles lie in panels of 64 columns: rows of 128 bytes, one swizzle span. A tile of K has panels of
// three kinds: the left half of V's columns, the right half, and rope, which V has not.
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

// Who multiplies what. Warpgroup EVEN scores tiles 0, 2, .. and has V's left half; ODD the others.
constexpr uint32_t EVEN = 0, ODD = 1, GATHER = 2;
constexpr uint32_t THREADS = 384;
constexpr uint32_t WARPS = 4;  // of a warpgroup
constexpr uint32_t GROUP_THREADS = 32 * WARPS;
constexpr uint32_t GATHER_THREADS = 128;
constexpr bool IS_COPIED = {{ "false" if WIDENS else "true" }};  // rows are, as they are
constexpr bool COPIES_ROPE = {{ "true" if not WIDENS or ROW == "fp8_656" else "false" }};

// A tile is filled part by part, each with a barrier of its own, in the order in which it is
// scored, which is that in which the last one is given back: the even tile's rope first, then
// quarters of V's columns; of the odd tile the right half first, and rope last, whose place has its
// weights, which EVEN reads.
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

// With which part of a tile the one to be filled is given back.
__device__ __forceinline__ constexpr uint32_t freed_with(uint32_t tile, uint32_t part) {
    return part == ROPE && tile == ODD ? QUARTERS / 2 - 1 : part;
}

// How many say that a part is full: threads that copied it, or that widened it. A quarter is one
// warp's; of rope each warp has a share. Of a pair's, who sends says so once more.
__device__ __forceinline__ constexpr uint32_t fillers(uint32_t part) {
    if (IS_COPIED || (COPIES_ROPE && part == ROPE)) return GATHER_THREADS;
    return (part == ROPE ? WARPS : 1) * (32 + (CTAS > 1 ? 1 : 0));
}

// What a warpgroup tells the other: with its weights the maximum they refer to, a row each; when an
// item ends its share of the sums of weights, exact and rounded, and of the highest scores.
struct Published {
    float maximum[HEADS], sum[HEADS], rounded[HEADS], highest[HEADS];
};

struct Shared {
    unsigned char q[PANELS][PANEL_BYTES];
    unsigned char k[2][PANELS][PANEL_BYTES];  // the even tile and the odd
    unsigned char weights[HAS_ROPE ? 1 : 2][PANEL_BYTES];  // with rope, the odd tile's lie there
    Published published[2];
    uint16_t counts[2][2][WARPS];  // [tile][its number % 2]: bits of the keys that count
    uint64_t q_full, q_free;
    uint64_t full[2][PARTS], free[2][PARTS];
{% if WIDENS %}    uint64_t landed[2][2][WARPS];  // [tile][of rope]: a warp's codes are there
{% endif %}    uint64_t weighed[2];  // weights are there, and what is told
    uint64_t scoring;  // all MMAs of the even tile's scores are issued: the odd tile's may follow
    uint64_t sent;  // of a pair: what this CTA sent of the odd tile is in the other one

    __device__ __forceinline__ unsigned char* weights_of(uint32_t tile) {
        return HAS_ROPE && tile == ODD ? k[ODD][V_PANELS] : weights[HAS_ROPE ? 0 : tile];
    }
};
static_assert(sizeof(Shared) <= SHARED_BYTES);

// Wait for both warpgroups that multiply.
__device__ __forceinline__ void meet_both() { ptx::barrier_sync_unaligned(3, 2 * GROUP_THREADS); }

// Wait for the warps of this warpgroup: what its MMAs read may be written when all are done.
__device__ __forceinline__ void meet_warpgroup() {
    ptx::barrier_sync(1 + threadIdx.x / 128, GROUP_THREADS);
}

template <typename T>
__device__ __forceinline__ uint32_t at(const T& place) {
    return ptx::shared_address(&place);
}

// Where the tensor cores find what: one number for all of shared memory, to which the rest are
// constants. Else the compiler makes each descriptor from its address, and keeps them all.
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

// One thread makes the barriers. A part is full when each gathering thread's copies are done, and
// the first one when each gathering warp has written its bits too; or when each thread has stored
// what it widened, and both CTAs of a pair have sent their halves of it. It is free when each
// thread of the warpgroup that read it last says so, in both CTAs.
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

// This thread is done with something that all threads of its warpgroup give back. Each says so for
// itself: racecheck follows threads, and one lane that arrives for its warp is no faster.
__device__ __forceinline__ void arrive(uint64_t& barrier) { ptx::mbarrier_arrive(at(barrier)); }

__device__ __forceinline__ void arrive_if(bool condition, uint64_t& barrier) {
    ptx::mbarrier_arrive_if(condition, at(barrier));
}

// This thread is done with a part of a tile. A pair's CTAs fill it in both: each is told.
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

// ODD has seen all of its tile: what the other CTA sent of it is here.
__device__ __forceinline__ void acknowledge_sender(Shared& shared) {
    if (threadIdx.x % 128 == 0) ptx::mbarrier_arrive_cluster(in_other(at(shared.sent)));
}
