// The gathering warpgroup. Eight threads copy a row, 16 bytes each, in one panel after the other; a
// thread has the same place in four rows, sixteen apart.
constexpr uint32_t ROWS = KEYS / 16;  // of a thread

struct Cache {
    const unsigned char* kv;
    const int32_t* indices;
    uint32_t indices_stride, page, blocks, block_stride;

    __device__ __forceinline__ mla::Selection selection(const Work& work, uint32_t token) const {
        return {indices, work.lengths, token, work.topk, indices_stride, page, blocks,
                block_stride};
    }
};

struct Rows {
    const unsigned char* from[ROWS];
    uint32_t bytes[ROWS];  // of each copy: 16, or 0 for zeros
    uint32_t counting;  // bits of the rows of this warp that count, in the order of its lanes

    // `row` is that of a lane's entry.
    __device__ __forceinline__ Rows(const Cache& cache, int32_t row) {
        counting = __ballot_sync(0xffffffff, row >= 0) & 0xffff;
#pragma unroll
        for (uint32_t i = 0; i < ROWS; ++i) {
            const int32_t mine = __shfl_sync(0xffffffff, row, 4 * i + threadIdx.x % 32 / 8);
            const uint64_t offset = mine < 0 ? 0 : uint64_t(mine) * ROW_BYTES;
            from[i] = cache.kv + offset + threadIdx.x % 8 * 16;
            bytes[i] = mine < 0 ? 0 : 16;
        }
    }
};

// Where a thread writes in a panel: its row of the first sixteen, its chunk of 16 bytes.
__device__ __forceinline__ uint32_t place_in_panel() {
    const uint32_t row = threadIdx.x % GATHER_THREADS / 8, chunk = threadIdx.x % 8;
    return row * SPAN_BYTES + (chunk ^ row % 8) * 16;
}

template <uint32_t tile>
__device__ __forceinline__ void fill(Shared& shared, const Rows& rows, uint32_t place,
                                     uint32_t filled) {
#pragma unroll
    for (uint32_t number = 0; number < PANELS; ++number) {
        const uint32_t panel = panel_at(tile, number);
        const uint32_t part = part_of(panel), freed = freed_with(tile, part);
        if (begins_part(tile, number) && (freed == part || number == 0)) {
            ptx::mbarrier_wait(at(shared.free[tile][freed]), filled % 2 ^ 1);
        }
        const uint32_t to = at(shared.k[tile][panel]) + place;
#pragma unroll
        for (uint32_t i = 0; i < ROWS; ++i) {
            ptx::cp_async(to + i * STEP_KEYS_BYTES, rows.from[i] + panel * SPAN_BYTES,
                          rows.bytes[i]);
        }
        if (number == 0 && threadIdx.x % 32 == 0) {
            shared.counts[tile][filled % 2][threadIdx.x % GATHER_THREADS / 32] = rows.counting;
            ptx::mbarrier_arrive(at(shared.full[tile][part]));
        }
        if (number + 1 == PANELS || begins_part(tile, number + 1)) {
            ptx::cp_async_arrive(at(shared.full[tile][part]));
        }
    }
}

__device__ __forceinline__ void load_q(Shared& shared, const TensorMap& q_map, const Item& item,
                                       uint32_t loaded) {
    ptx::mbarrier_wait(at(shared.q_free), loaded % 2 ^ 1);
    ptx::mbarrier_arrive_expect_tx(at(shared.q_full), PANELS * HEADS * SPAN_BYTES);
#pragma unroll
    for (uint32_t number = 0; number < PANELS; ++number) {
        const uint32_t panel = panel_at(EVEN, number);
        ptx::tma_load(at(shared.q[panel]), q_map, at(shared.q_full), panel * PANEL_COLUMNS,
                      item.head, item.token);
    }
}

__device__ __forceinline__ Item with_keys(Item item, const Work& work) {
    while (item.exists(work) && item.rounds == 0) item = item.after(work);
    return item;
}

// Lanes 0 to 15 of a warp read the entries of its sixteen rows: those of four neighbours (eight
// threads a row), sixteen apart. They do so a tile ahead, also from one item to the next.
__device__ __forceinline__ void gather(Shared& shared, const Work& work, const Cache& cache,
                                       const TensorMap& q_map) {
    const uint32_t warp = threadIdx.x % GATHER_THREADS / 32, lane = threadIdx.x % 32;
    const uint32_t mine = lane % 16 / 4 * 16 + warp * 4 + lane % 4;
    const uint32_t place = place_in_panel();
    const bool loads_q = warp == 0 && ptx::elect_one();
    if (loads_q) ptx::prefetch_map(q_map);
    Item item = with_keys(Item(work), work);
    if (!item.exists(work)) return;
    mla::Selection selection = cache.selection(work, item.token);
    int32_t entry = selection.entry(mine);
    for (uint32_t items = 0, number = 0; item.exists(work); ++items) {
        const Item next = with_keys(item.after(work), work);
        const mla::Selection following =
            cache.selection(work, next.exists(work) ? next.token : item.token);
        if (loads_q) load_q(shared, q_map, item, items);
        __syncwarp();
        for (uint32_t round = 0; round < item.rounds; ++round, ++number) {
            const uint32_t from = 2 * round * KEYS + mine;
            const Rows even(cache, selection.row(entry));
            entry = selection.entry(from + KEYS);
            fill<EVEN>(shared, even, place, number);
            const Rows odd(cache, selection.row(entry));
            entry = round + 1 < item.rounds ? selection.entry(from + 2 * KEYS)
                                            : following.entry(mine);
            fill<ODD>(shared, odd, place, number);
        }
        item = next;
        selection = following;
    }
}
