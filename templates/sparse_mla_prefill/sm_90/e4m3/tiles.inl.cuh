// Shared memory of the FP8 kernels: tiles in panels of 128 bytes a row, one swizzle span. A panel
// has 128 columns of e4m3, and two panels are half of V's columns; the last has rope, 64 columns of
// e4m3 or bf16, which V does not have.
constexpr uint32_t SPAN_BYTES = 128;
constexpr uint32_t PANEL_COLUMNS = 128;  // of V's
constexpr uint32_t PANEL_BYTES = KEYS * SPAN_BYTES;
constexpr uint32_t HEAD_PANEL_BYTES = HEADS * SPAN_BYTES;
constexpr uint32_t V_PANELS = LATENT / PANEL_COLUMNS;
constexpr uint32_t HALF_PANELS = V_PANELS / 2;
constexpr uint32_t HALF = LATENT / 2;  // columns of V of one warpgroup
constexpr bool HAS_ROPE = DEPTH > LATENT;
constexpr uint32_t PANELS = V_PANELS + HAS_ROPE;
constexpr uint32_t ROPE_BYTES = ROW_BYTES - LATENT;  // of a row
constexpr bool ROPE_IS_BF16 = ROPE_BYTES == 2 * (DEPTH - LATENT) && HAS_ROPE;
// Of Q as it comes, columns of two bytes.
constexpr uint32_t Q_PANELS = QUANTISES ? 2 * DEPTH / SPAN_BYTES : PANELS, Q_PANEL_COLUMNS = 64;
constexpr uint32_t STEP_BYTES = 32;  // of an MMA along a swizzled row
constexpr uint32_t BLOCKS = HEADS / 8;  // of eight heads, of which a thread has two

static_assert(HEADS % 8 == 0 && HEADS <= 64, "a thread has sums of no more heads");
static_assert(ROPE_BYTES <= SPAN_BYTES);

// The consumer warpgroups. EVEN scores tiles 0, 2, .. and has V's left half; ODD the others.
constexpr uint32_t EVEN = 0, ODD = 1, GATHER = 2;
constexpr uint32_t THREADS = 384;
constexpr uint32_t WARPS = 4;  // of a warpgroup
constexpr uint32_t GROUP_THREADS = 32 * WARPS;
// Lanes of a warp that arrive: all, because racecheck follows threads; only one if registers do not
// suffice.
constexpr uint32_t ARRIVING = {{ 1 if ROW == "fp8_640" and HEADS == 64 and QUERY == "bf16" else 32 }};
constexpr uint32_t ARRIVALS = WARPS * ARRIVING;  // of a warpgroup
constexpr uint32_t MULTIPLY_THREADS = 256, GATHER_THREADS = 128;
{% set MOST = ROW == "fp8_640" and QUERY == "e4m3" and HEADS == 64 -%}
constexpr uint32_t EVEN_REGISTERS = {{ 224 if HEADS == 64 else 216 }}, ODD_REGISTERS = {{ 224 if MOST else 216 }};
constexpr uint32_t GATHER_REGISTERS = {{ 56 if MOST else 64 if HEADS == 64 else 72 }};
static_assert(EVEN_REGISTERS + ODD_REGISTERS + GATHER_REGISTERS <= 3 * (65536 / THREADS / 8 * 8),
              "a CTA has no more registers than it starts with");

// The producer fills a tile part by part, each with its own barriers, in the order of scoring. The
// consumers release it in parts: rope by the warpgroup that scored it, each half of V's columns by
// the warpgroup that has it.
constexpr uint32_t PART_PANELS = HALF_PANELS;
constexpr uint32_t ROPE = 2;  // the part of a tile that is no half
constexpr uint32_t PARTS = ROPE + HAS_ROPE;

// The panel of a tile that is filled, and scored, after `number` others.
__device__ __forceinline__ constexpr uint32_t panel_at(uint32_t, uint32_t number) {
    return !HAS_ROPE ? number : number == 0 ? V_PANELS : number - 1;
}

__device__ __forceinline__ constexpr uint32_t part_of(uint32_t panel) {
    return panel / PART_PANELS;
}

__device__ __forceinline__ constexpr bool begins_part(uint32_t tile, uint32_t number) {
    return number == 0 || part_of(panel_at(tile, number)) != part_of(panel_at(tile, number - 1));
}

// 16-byte chunks of a row that a panel has.
__device__ __forceinline__ constexpr uint32_t chunks_of(uint32_t panel) {
    return (panel < V_PANELS ? SPAN_BYTES : ROPE_BYTES) / 16;
}

// Rounds of an even and an odd tile use this many pairs of tiles in turn.
// Rows with rope of bf16 have no registers for two.
constexpr uint32_t PAIRS = HEADS == 64 && (QUANTISES || ROPE_IS_BF16) ? 1 : 2, STAGES = 2 * PAIRS;

__device__ __forceinline__ constexpr uint32_t stage_of(uint32_t tile, uint32_t number) {
    return tile + 2 * (number % PAIRS);
}
__device__ __forceinline__ constexpr uint32_t phase_of(uint32_t number) {
    return number / PAIRS % 2;
}

// What a warpgroup publishes to the other: with its weights the maximum that they refer to, a head
// each; at the end of an item, for each warp's keys, the sums of weights and the highest scores.
struct Published {
    float maximum[HEADS];
    float sum[WARPS][HEADS], weights[WARPS][HEADS], rounded[WARPS][HEADS], highest[WARPS][HEADS];
};

struct Shared {
    unsigned char q[Q_PANELS][HEAD_PANEL_BYTES];  // as it comes
{%- if QUERY == "bf16" %}
    unsigned char codes[PANELS][HEAD_PANEL_BYTES];  // of Q, as rows of K are
{%- endif %}
    unsigned char k[STAGES][PANELS][PANEL_BYTES];
    unsigned char weights[HEAD_PANEL_BYTES];  // a head a row: of the even tile, then of the odd
    float scales[STAGES][KEYS];  // of rows
    alignas(8) float q_scales[HEADS];
    Published published[2];
    float most[2][WARPS][HEADS];  // of a warpgroup's tile, the highest score of each warp's keys
{%- if HEADS == 64 %}
    alignas(8) float maximum[2][HEADS];  // of this item, and of the next or the last
    float factors[2][HEADS];  // by which a tile's maxima moved
    uint32_t moved[2];  // whether they did
{%- endif %}
    uint16_t counts[STAGES][WARPS];  // bits of the valid keys
    uint64_t q_full, q_free;
    uint64_t full[STAGES][PARTS], free[STAGES][PARTS];
    uint64_t weighed[2];  // weights and what goes with them are published
};
static_assert(sizeof(Shared) <= SHARED_BYTES);
static_assert(HEAD_PANEL_BYTES % 1024 == 0, "swizzled tiles begin at 1024-byte boundaries");

__device__ __forceinline__ void meet_both() { ptx::barrier_sync_unaligned(3, MULTIPLY_THREADS); }

__device__ __forceinline__ void meet_warpgroup() {
    ptx::barrier_sync(1 + threadIdx.x / 128, GROUP_THREADS);
}

__device__ __forceinline__ bool any_of_warpgroup(bool condition) {
    return ptx::barrier_any(1 + threadIdx.x / 128, GROUP_THREADS, condition);
}

// The thread number in its warpgroup, computed again at each call, so that values derived from it
// occupy no registers in between.
__device__ __forceinline__ uint32_t thread_now() {
    uint32_t thread = threadIdx.x % 128;
    asm volatile("" : "+r"(thread));
    return thread;
}

template <typename T>
__device__ __forceinline__ uint32_t at(const T& place) {
    return ptx::shared_address(&place);
}

// Low halves of matrix descriptors: one base for all of shared memory plus constants and the stage.
struct Places {
    uint32_t first;

    __device__ __forceinline__ explicit Places(Shared& shared)
        : first(ptx::uniform(ptx::wgmma_descriptor_low(at(shared)))) {}

    __device__ __forceinline__ uint32_t codes(uint32_t panel) const {
        const uint32_t codes = offsetof(Shared, {{ "q" if QUERY == "e4m3" else "codes" }});
        return first + ((codes + panel * HEAD_PANEL_BYTES) >> 4);
    }
    __device__ __forceinline__ uint32_t k(uint32_t stage, uint32_t panel) const {
        return first + ((offsetof(Shared, k) + (stage * PANELS + panel) * PANEL_BYTES) >> 4);
    }
    __device__ __forceinline__ uint32_t weights(uint32_t tile) const {
        return first + ((offsetof(Shared, weights) + tile * KEYS) >> 4);
    }
};

// One thread initialises the barriers. A part is full when each producer thread's copies are done,
// the last one when each has also written its bits and scales. It is free when each thread of the
// warpgroup that reads it last has arrived.
__device__ __forceinline__ void init_barriers(Shared& shared) {
    ptx::mbarrier_init(at(shared.q_full), 1);
    ptx::mbarrier_init(at(shared.q_free), 2 * ARRIVALS);
    for (uint32_t stage = 0; stage < STAGES; ++stage) {
        for (uint32_t part = 0; part < PARTS; ++part) {
            const bool is_last = part == part_of(panel_at(stage % 2, PANELS - 1));
            ptx::mbarrier_init(at(shared.full[stage][part]), GATHER_THREADS + is_last * ARRIVALS);
            ptx::mbarrier_init(at(shared.free[stage][part]), ARRIVALS);
        }
    }
    for (uint32_t tile = 0; tile < 2; ++tile) {
        ptx::mbarrier_init(at(shared.weighed[tile]), ARRIVALS);
    }
    ptx::fence_mbarrier_init();
}

// Release something that all threads of the warpgroup read.
__device__ __forceinline__ void arrive(uint64_t& barrier) {
    if (ARRIVING < 32) __syncwarp();
    if (threadIdx.x % 32 < ARRIVING) ptx::mbarrier_arrive(at(barrier));
}
