// Two CTAs, a cluster, have the two tiles of heads of one token. Each gathers half of the rows of
// every tile of keys, makes them bf16, and sends them to the other: in a panel, a range of bytes.
//
//   full[tile][part]: this CTA's half is stored and sent, and the bytes of the other's are here
//   free[tile][part]: both CTAs have read it: this one may store, and send into the other
//   sent: the other one has all that this one sent of the odd tile, in whose place weights and
//         outputs are to be. For other places `free` says so: whoever gives back has received.
constexpr uint32_t HALF_BYTES = PANEL_BYTES / CTAS;
constexpr uint32_t AHEAD = 2;  // parts under way from memory: those after the one that is stored
constexpr uint32_t ROUND_PARTS = 2 * PARTS;  // of an even tile and an odd one
static_assert(ROUND_PARTS % AHEAD == 0, "each part of a round has registers of its own");

// Whose rows are loaded in a round: those of its two tiles, and of the next round's even tile.
struct RoundRows {
    int32_t even, odd, next;

    __device__ __forceinline__ int32_t of(uint32_t tile) const {
        return tile == 0 ? even : tile == 1 ? odd : next;
    }
};

// Send this CTA's half of a part when all gathering threads have stored theirs; warps take turns.
__device__ __forceinline__ void send_part(Shared& shared, uint32_t tile, uint32_t part,
                                          uint32_t turn) {
    const uint32_t full = at(shared.full[tile][part]), full_there = in_other(full);
    ptx::mbarrier_arrive(full);
    ptx::barrier_sync(4, GATHER_THREADS);
    if (threadIdx.x % GATHER_THREADS / 32 != turn % WARPS || !ptx::elect_one()) return;
    const bool is_rope = part == ROPE;
    const uint32_t from = at(shared.k[tile][part * PART_PANELS]) + rank() * HALF_BYTES;
    const uint32_t to = in_other(from);
    ptx::mbarrier_arrive_expect_tx(full, (is_rope ? 1 : PART_PANELS) * HALF_BYTES);
    ptx::bulk_send(to, from, HALF_BYTES, full_there);
    if (!is_rope) ptx::bulk_send(to + PANEL_BYTES, from + PANEL_BYTES, HALF_BYTES, full_there);
}

// Store a part of a round, which was loaded before, and load the part that comes AHEAD parts after.
__device__ __forceinline__ void fill_part(Shared& shared, const Cache& cache, Raw& raw,
                                          const RoundRows& rows, uint32_t of_round,
                                          uint32_t filled) {
    const uint32_t tile = of_round / PARTS, number = of_round % PARTS;
    const uint32_t part = part_at(tile, number), freed = freed_with(tile, part);
    const uint32_t later = of_round + AHEAD, later_tile = later / PARTS;
    const uint32_t later_part = part_at(later_tile % 2, later % PARTS);
    if (freed == part || number == 0) {
        ptx::mbarrier_wait(at(shared.free[tile][freed]), filled % 2 ^ 1);
    }
#pragma unroll
    for (uint32_t i = 0; i < ROWS; ++i) {
        raw.store(shared, tile, part, i);
        raw.load(cache.kv, cache.scales, later_part, rows.of(later_tile), i);
    }
    if (number == 0) {
        const uint32_t counting = counting_bits(rows.of(tile));
        if (threadIdx.x % 32 == 0) {
            shared.counts[tile][filled % 2][threadIdx.x % GATHER_THREADS / 32] = counting;
        }
    }
    ptx::fence_proxy_async_shared();
    send_part(shared, tile, part, of_round);
}

__device__ __forceinline__ void gather(Shared& shared, const Work& work, const Cache& cache,
                                       const TensorMap& q_map) {
    const bool loads_q = threadIdx.x % GATHER_THREADS < 32 && ptx::elect_one();
    if (loads_q) ptx::prefetch_map(q_map);
    const Item first = with_keys(Item(work), work);
    if (!first.exists(work)) return;
    Ahead ahead(work, cache, first);
    Raw raw[AHEAD];
    RoundRows rows;
    rows.next = ahead.take();
#pragma unroll
    for (uint32_t part = 0; part < AHEAD; ++part) {
#pragma unroll
        for (uint32_t i = 0; i < ROWS; ++i) {
            raw[part].load(cache.kv, cache.scales, part_at(EVEN, part), rows.next, i);
        }
    }
    for (uint32_t items = 0, filled = 0; ahead.item.exists(work); ++items) {
        if (loads_q) load_q(shared, q_map, ahead.item, items);
        __syncwarp();
        for (uint32_t rounds = ahead.item.rounds; rounds > 0; --rounds, ++filled) {
            rows.even = rows.next;
            rows.odd = ahead.take();
            rows.next = ahead.take();
#pragma unroll 1
            for (uint32_t first_part = 0; first_part < ROUND_PARTS; first_part += AHEAD) {
#pragma unroll
                for (uint32_t i = 0; i < AHEAD; ++i) {
                    fill_part(shared, cache, raw[i], rows, first_part + i, filled);
                }
            }
        }
    }
}
