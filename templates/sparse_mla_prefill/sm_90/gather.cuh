// Rows of bf16 are copied as they are, 16 bytes a thread, in one panel after the other.
static_assert(ROW_BYTES == 2 * DEPTH);

struct Rows {
    const unsigned char* from[ROWS];
    uint32_t bytes[ROWS];  // of each copy: 16, or 0 for zeros
    uint32_t counting;  // bits of the rows of this warp that count, in the order of its lanes

    // `row` is that of a lane's entry.
    __device__ __forceinline__ Rows(const Cache& cache, int32_t row) {
        counting = counting_bits(row);
#pragma unroll
        for (uint32_t i = 0; i < ROWS; ++i) {
            const int32_t mine = row_of_thread(row, i);
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

// Entries are read a tile ahead, also from one item to the next.
__device__ __forceinline__ void gather(Shared& shared, const Work& work, const Cache& cache,
                                       const TensorMap& q_map) {
    const uint32_t mine = place_of_lane(), place = place_in_panel();
    const bool loads_q = threadIdx.x % GATHER_THREADS < 32 && ptx::elect_one();
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
