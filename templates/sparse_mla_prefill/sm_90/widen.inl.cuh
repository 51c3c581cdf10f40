// Rows of e4m3 with scales become bf16 on their way. A thread has sixteen columns of a part, which
// is two panels, or rope. It stores a part row by row, and loads the next part's columns in place
// of each row that is stored: so loads are under way all the time, from one tile to the next too,
// in few registers.
constexpr uint32_t SCALES_BESIDE = {{ MOST_SCALES }};  // of a row, in the array
using Source = {{ "mla::InlineScales" if ROW == "fp8_656"
                  else "mla::ScalesBeside<DEPTH, " ~ SCALE_BLOCK ~ ">" }};
static_assert(ROW_BYTES == Source::ROW_BYTES);
static_assert(PART_PANELS * PANEL_COLUMNS == 8 * 16, "eight threads have a row of a part");

// What a thread has of its rows of a part: codes, or eight bf16 of rope; and their scale.
struct Raw {
    uint4 codes[ROWS];
    float scale[ROWS];

    __device__ __forceinline__ void load(const unsigned char* kv, const float* scales,
                                         uint32_t part, int32_t of_lane, uint32_t i) {
        const int32_t row = row_of_thread(of_lane, i);
        const bool is_rope = part == ROPE;
        const uint32_t chunk = threadIdx.x % 8, column = part * QUARTER + 16 * chunk;
        codes[i] = make_uint4(0, 0, 0, 0);
        scale[i] = 0;
        if (row < 0 || (is_rope && chunk >= Source::ROPE_LANES)) return;
        const unsigned char* bytes = kv + uint64_t(row) * ROW_BYTES;
        const uint32_t offset = is_rope ? Source::ROPE_OFFSET + 16 * chunk : column;
        codes[i] = *reinterpret_cast<const uint4*>(bytes + offset);
        if (is_rope && Source::ROPE_IS_BF16) return;
        scale[i] = Source::scale(bytes, scales + uint64_t(row) * SCALES_BESIDE, column);
    }

    __device__ __forceinline__ void store(Shared& shared, uint32_t tile, uint32_t part,
                                          uint32_t i) const {
        const uint32_t thread = threadIdx.x % 8, first = threadIdx.x % GATHER_THREADS / 8;
        const bool is_rope = part == ROPE;
        if (is_rope && thread >= Source::ROPE_LANES) return;
        const uint32_t panel = is_rope ? V_PANELS : part * PART_PANELS + thread / 4;
        const uint32_t line = at(shared.k[tile][panel]) +
                              (rank() * ROWS + i) * STEP_KEYS_BYTES + first * SPAN_BYTES;
        if (is_rope && Source::ROPE_IS_BF16) {
            ptx::store_shared(line + (thread ^ first % 8) * 16, codes[i]);
            return;
        }
        // Threads 4 on of eight begin with the other half, so that eight write to all banks.
        const bool turn = thread >= 4;
        const uint32_t to = line + ((thread % 4 * 2 + turn) ^ first % 8) * 16;
        const uint2 low = make_uint2(codes[i].x, codes[i].y);
        const uint2 high = make_uint2(codes[i].z, codes[i].w);
        const uint2 now = turn ? high : low, then = turn ? low : high;
        ptx::store_shared(to, mla::widen(now.x, now.y, scale[i]));
        ptx::store_shared(to ^ 16, mla::widen(then.x, then.y, scale[i]));
    }
};

// Fill a tile. Its first part was loaded before, as the next tile's is here, which may be of
// another cache.
__device__ __forceinline__ void fill(Shared& shared, const Cache& cache, const Cache& next_cache,
                                     Raw& raw, uint32_t tile, int32_t rows, int32_t next_rows,
                                     uint32_t filled) {
#pragma unroll 1
    for (uint32_t number = 0; number < PARTS; ++number) {
        const bool is_last = number + 1 == PARTS;
        const uint32_t part = part_at(tile, number), freed = freed_with(tile, part);
        const uint32_t upcoming = is_last ? part_at(tile ^ 1, 0) : part_at(tile, number + 1);
        if (freed == part || number == 0) {
            ptx::mbarrier_wait(at(shared.free[tile][freed]), filled % 2 ^ 1);
        }
        const int32_t upcoming_rows = is_last ? next_rows : rows;
        const unsigned char* kv = cache.kv;
        const float* scales = cache.scales;
        if (is_last) kv = next_cache.kv, scales = next_cache.scales;
#pragma unroll
        for (uint32_t i = 0; i < ROWS; ++i) {
            raw.store(shared, tile, part, i);
            raw.load(kv, scales, upcoming, upcoming_rows, i);
        }
        if (number == 0) {
            const uint32_t counting = counting_bits(rows);
            if (threadIdx.x % 32 == 0) {
                shared.counts[tile][filled % 2][threadIdx.x % GATHER_THREADS / 32] = counting;
            }
        }
        ptx::fence_proxy_async_shared();
        arrive(shared.full[tile][part]);
    }
}
