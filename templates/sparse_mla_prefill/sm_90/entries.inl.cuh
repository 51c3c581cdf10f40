// The gathering warpgroup, whatever rows are like. Eight threads have a row, and a thread the same
// place in four rows, sixteen apart; or in two, where a CTA gathers half of a tile.
constexpr uint32_t ROWS = KEYS / 16 / CTAS;  // of a thread

// Which of the CTAs of its cluster this is.
__device__ __forceinline__ uint32_t rank() { return blockIdx.x % CTAS; }

__device__ __forceinline__ void load_q(Shared& shared, const TensorMap& q_map, const Item& item,
                                       uint32_t loaded) {
    ptx::mbarrier_wait(at(shared.q_free), loaded % 2 ^ 1);
    ptx::mbarrier_arrive_expect_tx(at(shared.q_full), sizeof(shared.q));
#pragma unroll
    for (uint32_t number = 0; number < Q_PANELS; ++number) {
        const uint32_t panel = Q_PANELS == PANELS ? panel_at(EVEN, number) : number;
        ptx::tma_load(at(shared.q[panel]), q_map, at(shared.q_full), panel * Q_PANEL_COLUMNS,
                      item.head, item.token);
    }
}

// Lanes 0 to 15 of a warp read the entries of its sixteen rows: those of four neighbours (eight
// threads a row), sixteen apart. A tile's bits of rows that count lie in that order.
__device__ __forceinline__ uint32_t place_of_lane() {
    const uint32_t warp = threadIdx.x % GATHER_THREADS / 32, lane = threadIdx.x % 32;
    return lane % 16 / 4 * 16 + warp * 4 + lane % 4;
}

__device__ __forceinline__ uint32_t counting_bits(int32_t row) {
    return __ballot_sync(0xffffffff, row >= 0) & 0xffff;
}

// Of the rows that lanes read, the one in which a thread has its `i`th place.
__device__ __forceinline__ int32_t row_of_thread(int32_t row, uint32_t i) {
    return __shfl_sync(0xffffffff, row, 4 * (rank() * ROWS + i) + threadIdx.x % 32 / 8);
}
