// A producer warp's shares of a tile, its quarter and its rows' rope, in the order of scoring.
constexpr uint32_t SHARES = 1 + HAS_ROPE;
constexpr bool WIDENS_ROPE = HAS_ROPE && !COPIES_ROPE;

__device__ __forceinline__ bool is_rope_at(uint32_t tile, uint32_t number) {
    return HAS_ROPE && (number == 0) == (part_at(tile, 0) == ROPE);
}

__device__ __forceinline__ bool has_ended(uint32_t barrier, uint32_t parity) {
    return __all_sync(0xffffffff, ptx::mbarrier_test(barrier, parity));
}

// The cp.async copies of a warp's shares, each as soon as its place is free, up to two tiles ahead
// of dequantisation. `Tiles` gives the rows of one tile after the other.
template <typename Tiles>
struct Copying {
    Shared& shared;
    const Where& where;
    Tiles& tiles;
    bool exists = true;
    uint32_t tile = ODD, number = SHARES, filled = ~0u;  // the next share: the first tile's first

    // Copy the next share, if its place is free. It never waits, because freeing the place may
    // depend on this copy.
    __device__ __forceinline__ void go_on() {
        if (number == SHARES) next_tile();
        if (!exists) return;
        const bool is_rope = is_rope_at(tile, number);
        const uint32_t part = is_rope ? ROPE : where.warp;
        if (!has_ended(where.free(tile, freed_with(tile, part)), filled % 2 ^ 1)) return;
        if (number == 0) note_counting();
        copy(is_rope);
        ++number;
    }

    __device__ __forceinline__ void next_tile() {
        number = 0;
        filled += tile;
        tile ^= 1;
        exists = tiles.take();
    }

    __device__ __forceinline__ void copy(bool is_rope) const {
        if (!is_rope) {
            Codes<false>{where, tile}.copy(tiles.cache(), tiles.rows());
        } else if constexpr (WIDENS_ROPE) {
            Codes<true>{where, tile}.copy(tiles.cache(), tiles.rows());
        } else if constexpr (COPIES_ROPE) {
            copy_rope(where, tile, tiles.cache(), tiles.rows());
        }
    }

    // The consumers read it when all parts are full.
    __device__ __forceinline__ void note_counting() const {
        const uint2 counting = tiles.rows().counting();
        if (threadIdx.x % GATHER_THREADS != 0) return;
        ptx::store_shared(at(shared.counts[tile][filled % 2]), counting);
    }
};

// Dequantise a share that has landed, and arrive.
template <bool IS_ROPE>
__device__ __forceinline__ void widen(const Where& where, uint32_t tile) {
    const Codes<IS_ROPE> codes{where, tile};
    const uint32_t full = where.full(tile, IS_ROPE ? ROPE : where.warp);
    codes.widen();
{%- if CTAS > 1 %}
    send(codes.line(4 * codes.first_four()), IS_ROPE ? 1 : PART_PANELS,
         codes.COUNT * 4 * SPAN_BYTES, full);
{%- else %}
    ptx::mbarrier_arrive(full);
{%- endif %}
}

// Dequantise all shares while later ones are copied. `tiles` knows only the item of the rows it
// took last. That is the item which begins here: it has two tiles or more, and the last one's place
// is not free before the first is dequantised.
template <typename Tiles>
__device__ __forceinline__ void fill_all(Shared& shared, Tiles& tiles) {
    constexpr uint32_t WIDENED = 1 + WIDENS_ROPE;  // of a tile's shares
    Where where(shared);
    Copying<Tiles> copying{shared, where, tiles};
    uint32_t items = 0, left = 0;  // tiles of the item
    uint32_t number = 0, tile = EVEN, filled = 0;
    while (true) {
        where.renew();
        copying.go_on();
        if (left == 0) {
            if (tiles.items == items && copying.exists) continue;
            if (tiles.items == items) break;
            if (where.warp == 0 && !has_ended(at(shared.q_free), items % 2 ^ 1)) continue;
            left = 2 * tiles.rounds;
            tiles.begin(items++);
        }
        const bool is_rope = WIDENS_ROPE && is_rope_at(tile, number);
        if (!has_ended(where.landed(tile, is_rope), filled % 2)) continue;
        if (!is_rope) {
            widen<false>(where, tile);
        } else if constexpr (WIDENS_ROPE) {
            widen<true>(where, tile);
        }
        if (++number < WIDENED) continue;
        number = 0;
        filled += tile;
        tile ^= 1;
        --left;
    }
    tiles.end(items);
}
