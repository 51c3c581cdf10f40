static_assert(ROW_BYTES == 2 * DEPTH);

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
