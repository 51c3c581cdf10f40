// The producer (gathering) warps, for all row formats.

// The rank of this CTA in its cluster.
__device__ __forceinline__ uint32_t rank() { return blockIdx.x % CTAS; }

__device__ __forceinline__ uint32_t gathering_warp() {
    return threadIdx.x % GATHER_THREADS / 32;
}

__device__ __forceinline__ void load_q(Shared& shared, const TensorMap& q_map, uint32_t token,
                                       uint32_t head, uint32_t loaded) {
    ptx::mbarrier_wait(at(shared.q_free), loaded % 2 ^ 1);
    ptx::mbarrier_arrive_expect_tx(at(shared.q_full), sizeof(shared.q));
#pragma unroll
    for (uint32_t number = 0; number < Q_PANELS; ++number) {
        const uint32_t panel = Q_PANELS == PANELS ? panel_at(EVEN, number) : number;
        ptx::tma_load(at(shared.q[panel]), q_map, at(shared.q_full), panel * Q_PANEL_COLUMNS,
                      head, token);
    }
}

{% if WIDENS -%}
// Each warp has all of a tile's keys, a lane two of them, eight apart. It gathers the rows of four
// neighbours at a time. Bits of valid keys are two words: of the lanes' first keys, and of the
// second.
constexpr uint32_t ENTRIES = 2;

__device__ __forceinline__ uint32_t place_of(uint32_t lane) {
    return lane % 16 / 4 * 16 + lane / 16 * 4 + lane % 4;
}

__device__ __forceinline__ uint32_t place_of_lane() { return place_of(ptx::lane()); }

struct LaneRows {
    int32_t of[ENTRIES];  // -1: masked

    __device__ __forceinline__ uint2 counting() const {
        return make_uint2(__ballot_sync(0xffffffff, of[0] >= 0),
                          __ballot_sync(0xffffffff, of[1] >= 0));
    }

    // The row that a thread has a part of, among the four keys from 4 * `four` on.
    __device__ __forceinline__ int32_t of_four(uint32_t four, uint32_t lane) const {
        const int32_t mine = four / 2 % 2 ? of[1] : of[0];
        return __shfl_sync(0xffffffff, mine, four % 2 * 16 + four / 4 * 4 + lane / 8);
    }
};
{%- else -%}
// Eight threads share a row, and a thread has the same place in four rows, sixteen apart. Lanes 0
// to 15 of a warp read the entries of its sixteen rows: groups of four neighbours, sixteen apart. A
// tile's bits of valid rows are in that order.
constexpr uint32_t ENTRIES = 1;  // of a lane
constexpr uint32_t ROWS = KEYS / 16;  // of a thread

struct LaneRows {
    int32_t of[ENTRIES];  // -1: masked
};

__device__ __forceinline__ uint32_t place_of_lane() {
    const uint32_t lane = threadIdx.x % 32;
    return lane % 16 / 4 * 16 + gathering_warp() * 4 + lane % 4;
}

__device__ __forceinline__ uint32_t counting_bits(int32_t row) {
    return __ballot_sync(0xffffffff, row >= 0) & 0xffff;
}

// Among the rows that lanes read, the one of a thread's `i`th place.
__device__ __forceinline__ int32_t row_of_thread(int32_t row, uint32_t i) {
    return __shfl_sync(0xffffffff, row, 4 * i + threadIdx.x % 32 / 8);
}
{%- endif %}
