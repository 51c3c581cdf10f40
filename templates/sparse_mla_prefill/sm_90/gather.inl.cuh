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
        if (loads_q) load_q(shared, q_map, item.token, item.head, items);
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
