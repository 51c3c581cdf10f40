__device__ __forceinline__ void gather(Memory& memory, const Plan& plan, const Outputs& outputs,
                                       const TensorMap& q_map) {
    const bool is_one = threadIdx.x % GATHER_THREADS < 32 && ptx::elect_one();
    if (is_one) ptx::prefetch_map(q_map);
    Ahead ahead(plan, outputs);
    Raw raw;
    Listed rows = {};
    uint32_t items = 0;
    for (uint32_t filled = 0; ahead.exists(); ++items) {
        if (is_one) begin(memory, q_map, ahead.item(), items);
        __syncwarp();
        if (items == 0) {
            rows = ahead.take();
#pragma unroll
            for (uint32_t i = 0; i < ROWS; ++i) {
                const Cache cache = plan.cache(rows);
                raw.load(cache.kv, cache.scales, part_at(EVEN, 0), rows.row, i);
            }
        }
        uint32_t counting = 0;
        // The last of an item's tiles takes the next one's first.
        for (bool is_last = false; !is_last; ++filled) {
            is_last = ahead.begins;
            counting |= counting_bits(rows.row);
            if (is_last) note(memory, items, counting);
            const Listed next = ahead.exists() ? ahead.take() : Listed{false, -1};
            fill(memory.tiles, plan.cache(rows), plan.cache(next), raw, filled % 2, rows.row,
                 next.row, filled / 2);
            rows = next;
        }
    }
    if (is_one) end(memory, items);
}
