{% include "sparse_mla_prefill/sm_90/widen.inl.cuh" %}

// The rows of each tile, one after the other: of a lane the one that its entry names. Entries are
// read a tile before.
struct Ahead {
    const Work& work;
    const Cache& cache;
    Item item;
    mla::Selection selection;
    uint32_t tile = 0;
    int32_t entry;

    __device__ __forceinline__ Ahead(const Work& work, const Cache& cache, const Item& first)
        : work(work), cache(cache), item(first), selection(cache.selection(work, first.token)),
          entry(selection.entry(place_of_lane())) {}

    __device__ __forceinline__ int32_t take() {
        const int32_t row = selection.row(entry);
        entry = -1;
        if (++tile == 2 * item.rounds) {
            tile = 0;
            item = with_keys(item.after(work), work);
            if (!item.exists(work)) return row;
            selection = cache.selection(work, item.token);
        }
        entry = selection.entry(tile * KEYS + place_of_lane());
        return row;
    }
};

{% if CTAS > 1 %}{% include "sparse_mla_prefill/sm_90/pair.inl.cuh" %}
{% else -%}
__device__ __forceinline__ void gather(Shared& shared, const Work& work, const Cache& cache,
                                       const TensorMap& q_map) {
    const bool loads_q = threadIdx.x % GATHER_THREADS < 32 && ptx::elect_one();
    if (loads_q) ptx::prefetch_map(q_map);
    Item item = with_keys(Item(work), work);
    if (!item.exists(work)) return;
    Ahead ahead(work, cache, item);
    Raw raw;
    int32_t rows = ahead.take();
#pragma unroll
    for (uint32_t i = 0; i < ROWS; ++i) {
        raw.load(cache.kv, cache.scales, part_at(EVEN, 0), rows, i);
    }
    for (uint32_t items = 0, filled = 0; item.exists(work); ++items) {
        if (loads_q) load_q(shared, q_map, item, items);
        __syncwarp();
        for (uint32_t tiles = 2 * item.rounds; tiles > 0; --tiles, ++filled) {
            const int32_t next_rows = ahead.take();
            fill(shared, cache, cache, raw, filled % 2, rows, next_rows, filled / 2);
            rows = next_rows;
        }
        item = with_keys(item.after(work), work);
    }
}
{% endif %}
