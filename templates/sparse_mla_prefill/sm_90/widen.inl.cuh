// In-place dequantisation by the producer warps: rows of e4m3 with scales become bf16 in shared
// memory. Each warp has a quarter of every row that this CTA gathers: it copies codes to a row's
// line of the quarter's second panel, and their scales to the same line of the first. The eight
// threads of a row load these, sync, and store bf16 in their place. So copies into all free places
// may be in flight, without registers, and warps do not wait for each other. Each warp has a share
// of the rows' rope.
constexpr uint32_t SCALES_BESIDE = {{ MOST_SCALES }};  // of a row, in the separate array
using Source = {{ "mla::InlineScales" if ROW == "fp8_656"
                  else "mla::ScalesBeside<DEPTH, " ~ SCALE_BLOCK ~ ">" }};
static_assert(ROW_BYTES == Source::ROW_BYTES);
static_assert(COPIES_ROPE == Source::ROPE_IS_BF16);
static_assert(QUARTERS == WARPS && PART_PANELS * PANEL_COLUMNS == 8 * 16);
constexpr uint32_t FOURS = KEYS / 4 / CTAS;  // of a tile's rows that this CTA gathers
constexpr uint32_t BATCH = 4;  // fours that are dequantised together

// The addresses of a warp's parts of shared memory, all computed from one number.
struct Where {
    uint32_t first, warp;

    __device__ __forceinline__ explicit Where(Shared& shared)
        : first(ptx::uniform(at(shared))), warp(gathering_warp()) {}

    // Compute addresses again from here on; otherwise each of them occupies a register throughout.
    __device__ __forceinline__ void renew() { asm volatile("" : "+r"(first), "+r"(warp)); }

    __device__ __forceinline__ uint32_t line(uint32_t tile, uint32_t panel, uint32_t row) const {
        return first + offsetof(Shared, k) + (tile * PANELS + panel) * PANEL_BYTES +
               row * SPAN_BYTES;
    }
    __device__ __forceinline__ uint32_t full(uint32_t tile, uint32_t part) const {
        return first + offsetof(Shared, full) + 8 * (tile * PARTS + part);
    }
    __device__ __forceinline__ uint32_t free(uint32_t tile, uint32_t part) const {
        return first + offsetof(Shared, free) + 8 * (tile * PARTS + part);
    }
    __device__ __forceinline__ uint32_t landed(uint32_t tile, uint32_t is_rope) const {
        return first + offsetof(Shared, landed) +
               8 * ((2 * tile + is_rope) * WARPS + warp);
    }
};

// The codes that a warp has of a tile: a quarter of rows, or some rows' rope.
template <bool IS_ROPE>
struct Codes {
    static constexpr uint32_t COUNT = IS_ROPE ? FOURS / WARPS : FOURS;  // of fours
    static constexpr uint32_t COLUMNS = IS_ROPE ? DEPTH - LATENT : QUARTER;
    static constexpr uint32_t LANES = COLUMNS / 16;  // lanes that share a row
    static constexpr uint32_t BLOCKS = (COLUMNS + Source::BLOCK - 1) / Source::BLOCK;
    const Where& where;
    uint32_t tile;
    uint32_t lane = ptx::lane();

    __device__ __forceinline__ uint32_t chunk() const { return lane % 8; }
    __device__ __forceinline__ uint32_t row() const { return lane / 8; }

    __device__ __forceinline__ uint32_t first_four() const {
        return rank() * FOURS + (IS_ROPE ? where.warp * COUNT : 0);
    }

    __device__ __forceinline__ uint32_t column() const {
        return IS_ROPE ? LATENT : where.warp * QUARTER;
    }

    // The address of a row's bf16, from the first of these columns on.
    __device__ __forceinline__ uint32_t line(uint32_t key) const {
        return where.line(tile, column() / PANEL_COLUMNS, key);
    }

    // Offsets in a row's line: codes, and scales, which for four neighbours are in different banks.
    static __device__ __forceinline__ uint32_t codes() { return IS_ROPE ? 0 : PANEL_BYTES; }
    static __device__ __forceinline__ uint32_t scales(uint32_t key) {
        return IS_ROPE * SPAN_BYTES / 2 + key % 4 * 16;
    }

    __device__ __forceinline__ void copy(const Cache& cache, const LaneRows& rows) const {
        const uint32_t to = line(4 * first_four() + row()) + codes() + 16 * chunk();
#pragma unroll 4
        for (uint32_t i = 0; i < COUNT; ++i) {
            const int32_t found = rows.of_four(first_four() + i, lane);
            const unsigned char* bytes = cache.kv + uint64_t(found < 0 ? 0 : found) * ROW_BYTES;
            if (chunk() >= LANES) continue;
            ptx::cp_async(to + i * 4 * SPAN_BYTES, bytes + column() + 16 * chunk(),
                          found < 0 ? 0 : 16);
        }
        copy_scales(cache, rows);
        ptx::cp_async_arrive(where.landed(tile, IS_ROPE));
    }

    // A lane copies the scales of its own keys' rows.
    __device__ __forceinline__ void copy_scales(const Cache& cache, const LaneRows& rows) const {
#pragma unroll
        for (uint32_t i = 0; i < ENTRIES; ++i) {
            const uint32_t key = place_of(lane) + 8 * i, number = max(rows.of[i], 0);
            if (key / 4 - first_four() >= COUNT) continue;
            const float* from =
                Source::scales(cache.kv + uint64_t(number) * ROW_BYTES,
                               cache.scales + uint64_t(number) * SCALES_BESIDE, column());
#pragma unroll 1
            for (uint32_t block = 0; block < BLOCKS; ++block) {
                ptx::cp_async_word(line(key) + scales(key) + 4 * block, from + block,
                                   rows.of[i] >= 0);
            }
        }
    }

    // All copies have landed.
    __device__ __forceinline__ void widen() const {
        constexpr uint32_t TOGETHER = COUNT < BATCH ? COUNT : BATCH;
        const uint32_t key = 4 * first_four() + row(), mine = chunk() % LANES;
#pragma unroll 1
        for (uint32_t four = 0; four < COUNT; four += TOGETHER) {
            const uint32_t from = line(key + 4 * four);
            uint4 found[TOGETHER];
            uint32_t scale[TOGETHER];
#pragma unroll
            for (uint32_t i = 0; i < TOGETHER; ++i) {
                const uint32_t of_row = from + i * 4 * SPAN_BYTES;
                scale[i] = ptx::load_shared_word(of_row + scales(row()) +
                                                 16 * mine / Source::BLOCK * 4);
                found[i] = ptx::load_shared_words(of_row + codes() + 16 * mine);
            }
            __syncwarp();
#pragma unroll
            for (uint32_t i = 0; i < TOGETHER; ++i) {
                if (chunk() >= LANES) continue;
                store(key + 4 * (four + i), found[i], __uint_as_float(scale[i]));
            }
        }
    }

    // The second four of eight threads begin with the other half, so that eight write to all banks.
    __device__ __forceinline__ void store(uint32_t key, uint4 codes, float scale) const {
        const bool turn = chunk() >= 4;
        const uint32_t place = chunk() % 4 * 2 + turn;
        const uint32_t to = line(key) + chunk() / 4 * PANEL_BYTES + (place ^ key % 8) * 16;
        const uint2 low = make_uint2(codes.x, codes.y), high = make_uint2(codes.z, codes.w);
        const uint2 now = turn ? high : low, then = turn ? low : high;
        ptx::store_shared(to, mla::widen(now.x, now.y, scale));
        ptx::store_shared(to ^ 16, mla::widen(then.x, then.y, scale));
    }
};

// Rope in bf16 is copied to its place; in a pair each CTA copies it for all rows.
__device__ __forceinline__ void copy_rope(const Where& where, uint32_t tile, const Cache& cache,
                                          const LaneRows& rows) {
    constexpr uint32_t COUNT = KEYS / 4 / WARPS;
    const uint32_t lane = ptx::lane(), chunk = lane % 8, first = where.warp * COUNT;
#pragma unroll
    for (uint32_t i = 0; i < COUNT; ++i) {
        const uint32_t key = 4 * (first + i) + lane / 8;
        const int32_t row = rows.of_four(first + i, lane);
        const uint64_t offset = uint64_t(row < 0 ? 0 : row) * ROW_BYTES + Source::ROPE_OFFSET;
        const uint32_t to = where.line(tile, V_PANELS, key) + (chunk ^ key % 8) * 16;
        ptx::cp_async(to, cache.kv + offset + 16 * chunk, row < 0 ? 0 : 16);
    }
    ptx::cp_async_arrive(where.full(tile, ROPE));
}

{% if CTAS > 1 %}{% include "sparse_mla_prefill/sm_90/pair.inl.cuh" %}
{% endif %}{% include "sparse_mla_prefill/sm_90/copying.inl.cuh" %}
