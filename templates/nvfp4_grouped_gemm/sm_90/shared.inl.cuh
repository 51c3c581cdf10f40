// Shared memory: the stages, whose parts all begin where the swizzle's pattern does; the scales;
// the barriers; then the split-K parts that other CTAs send.
struct Memory {
    struct Stage {
        unsigned char tokens[TOKENS_BYTES];
        unsigned char codes[CODES_BYTES + PACKED_BYTES];  // of weights, then of packed tokens
    } stages[STAGES];
    unsigned char scales[STAGES][SCALES_BYTES + TOKEN_SCALES_BYTES + WIDE_SCALES_BYTES];
    struct alignas({{ BARRIER_BYTES }}) Barriers {
        uint64_t full[STAGES];  // arrivals: the producer warp, with the bytes that it expects
        uint64_t empty[STAGES];  // RELEASES arrivals of the consumers
        uint64_t prepared[STAGES];  // every transform thread
        uint64_t received, drained;  // SplitSum's
    } barriers;
};
static_assert(sizeof(Memory) + Parts::bytes({{ MOST_SPLIT }}) <= {{ SHARED_BYTES }},
              "shared memory is full");

// Their shared-memory addresses.
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

// The first of a consumer thread's two weights. They are neighbours in the tile and rows r and r +
// 8 of its warp's fragment, so that its elements of C are pairs of neighbours too.
__device__ __forceinline__ uint32_t first_row() {
    return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 * 2;
}

// The offset, among a stage's scales, of the word of row `row` and a panel.
__device__ __forceinline__ uint32_t scale_offset(uint32_t row, uint32_t panel) {
    const uint32_t of_block = row % SCALE_ROWS;
    return (row / SCALE_ROWS * PANELS + panel) * SCALE_PANEL_BYTES + of_block % 32 * 16 +
           of_block / 32 * 4;
}

// The same among the widened scales, four bf16.
__device__ __forceinline__ uint32_t wide_scale_offset(uint32_t row, uint32_t panel) {
    return (panel * TILE_WEIGHTS + row) * 8;
}
