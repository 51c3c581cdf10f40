// Shared memory: what the MMAs read and what TMA writes of every stage, in parts that all begin at
// the span of a swizzle; scales and barriers, and behind them the parts that other CTAs send.
struct Memory {
    struct Stage {
        unsigned char tokens[TOKENS_BYTES];
        unsigned char codes[CODES_BYTES + PACKED_BYTES];  // of weights, then of packed tokens
    } stages[STAGES];
    unsigned char scales[STAGES][SCALES_BYTES + TOKEN_SCALES_BYTES + WIDE_SCALES_BYTES];
    struct alignas({{ BARRIER_BYTES }}) Barriers {
        uint64_t full[STAGES];  // the load warp arrives, and the bytes that it announces
        uint64_t empty[STAGES];  // RELEASES arrivals of those who multiply
        uint64_t prepared[STAGES];  // every preparing thread
        uint64_t received, drained;  // SplitSum's
    } barriers;
};
static_assert(sizeof(Memory) + Parts::bytes({{ MOST_SPLIT }}) <= {{ SHARED_BYTES }},
              "shared memory is full");

// Where these lie, as addresses of shared memory.
struct Shared {
    static constexpr uint32_t STAGE_BYTES = sizeof(Memory::Stage);
    static constexpr uint32_t STAGE_SCALES_BYTES = sizeof(Memory::scales[0]);
    static constexpr uint32_t SCALES = KP_OFFSET_OF(Memory, scales);
    static constexpr uint32_t FULL = KP_OFFSET_OF(Memory, barriers.full);
    static constexpr uint32_t EMPTY = KP_OFFSET_OF(Memory, barriers.empty);
    static constexpr uint32_t PREPARED = KP_OFFSET_OF(Memory, barriers.prepared);
    static constexpr uint32_t RECEIVED = KP_OFFSET_OF(Memory, barriers.received);
    static constexpr uint32_t DRAINED = KP_OFFSET_OF(Memory, barriers.drained);
    static constexpr uint32_t PARTS = sizeof(Memory);

    uint32_t base;

    __device__ uint32_t tokens(uint32_t stage) const { return base + stage * STAGE_BYTES; }
    __device__ uint32_t codes(uint32_t stage) const { return tokens(stage) + TOKENS_BYTES; }
    __device__ uint32_t packed(uint32_t stage) const { return codes(stage) + CODES_BYTES; }
    __device__ uint32_t scales(uint32_t stage) const {
        return base + SCALES + stage * STAGE_SCALES_BYTES;
    }
    __device__ uint32_t token_scales(uint32_t stage) const { return scales(stage) + SCALES_BYTES; }
    __device__ uint32_t wide_scales(uint32_t stage) const {
        return token_scales(stage) + TOKEN_SCALES_BYTES;
    }
    __device__ uint32_t full(uint32_t stage) const { return base + FULL + 8 * stage; }
    __device__ uint32_t empty(uint32_t stage) const { return base + EMPTY + 8 * stage; }
    __device__ uint32_t prepared(uint32_t stage) const { return base + PREPARED + 8 * stage; }
    __device__ uint32_t received() const { return base + RECEIVED; }
    __device__ uint32_t drained() const { return base + DRAINED; }
    __device__ uint32_t parts() const { return base + PARTS; }
};

// A multiplying thread has two weights, neighbours in the tile, as rows r and r + 8 of its warp's
// fragment: what it holds of C are pairs of neighbours too. This is the first.
__device__ __forceinline__ uint32_t first_row() {
    return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 * 2;
}

// Where the scales of a panel of row `row` lie among a stage's, a word.
__device__ __forceinline__ uint32_t scale_offset(uint32_t row, uint32_t panel) {
    const uint32_t of_block = row % SCALE_ROWS;
    return (row / SCALE_ROWS * PANELS + panel) * SCALE_PANEL_BYTES + of_block % 32 * 16 +
           of_block / 32 * 4;
}

// The same among widened ones, four of bf16.
__device__ __forceinline__ uint32_t wide_scale_offset(uint32_t row, uint32_t panel) {
    return (panel * TILE_WEIGHTS + row) * 8;
}
