template <uint32_t tile>
__device__ __forceinline__ void fill(Shared& shared, const Rows& rows, uint32_t place,
                                     uint32_t filled) {
    const uint32_t stage = stage_of(tile, filled), warp = threadIdx.x % GATHER_THREADS / 32;
#pragma unroll
    for (uint32_t number = 0; number < PANELS; ++number) {
        const uint32_t panel = panel_at(tile, number);
        uint64_t& full = shared.full[stage][part_of(panel)];
        if (begins_part(tile, number)) {
            ptx::mbarrier_wait(at(shared.free[stage][part_of(panel)]), phase_of(filled) ^ 1);
        }
        const uint32_t to = at(shared.k[stage][panel]) + place;
        if (threadIdx.x % 8 < chunks_of(panel)) {
#pragma unroll
            for (uint32_t i = 0; i < ROWS; ++i) {
                ptx::cp_async(to + i * 16 * SPAN_BYTES, rows.from[i] + panel * SPAN_BYTES,
                              rows.bytes[i]);
            }
        }
        if (number + 1 == PANELS) {
            if (threadIdx.x % 32 < 16) shared.scales[stage][place_of_lane()] = rows.scale;
            if (threadIdx.x % 32 == 0) shared.counts[stage][warp] = rows.counting;
            arrive(full);
        }
        if (number + 1 == PANELS || begins_part(tile, number + 1)) ptx::cp_async_arrive(at(full));
    }
}
