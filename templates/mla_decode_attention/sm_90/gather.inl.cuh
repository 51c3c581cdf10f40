__device__ __forceinline__ void gather(Memory& memory, const Plan& plan, const Outputs& outputs,
                                       const TensorMap& q_map) {
    const uint32_t place = place_in_panel();
    const bool is_one = threadIdx.x % GATHER_THREADS < 32 && ptx::elect_one();
    if (is_one) ptx::prefetch_map(q_map);
    Ahead ahead(plan, outputs);
    uint32_t items = 0;
    for (uint32_t number = 0; ahead.exists(); ++items) {
        if (is_one) begin(memory, q_map, ahead.item(), items);
        __syncwarp();
        uint32_t counting = 0;
        for (bool is_last = false; !is_last; ++number) {
            const Listed even = ahead.take();
            fill<EVEN>(memory.tiles, Rows(plan.cache(even), even.rows.of[0]), place, number);
            const Listed odd = ahead.take();
            is_last = ahead.begins;
            counting |= counting_bits(even.rows.of[0]) | counting_bits(odd.rows.of[0]);
            if (is_last) note(memory, items, counting);
            fill<ODD>(memory.tiles, Rows(plan.cache(odd), odd.rows.of[0]), place, number);
        }
    }
    if (is_one) end(memory, items);
}
