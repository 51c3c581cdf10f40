// Transform warps widen the scales of weights to bf16: four of a weight and panel in eight bytes. A
// warp takes a panel of 128 weights; a lane's 16 bytes are the scales of every 32nd weight.
__device__ __forceinline__ void prepare_stage(const Shared& shared, uint32_t stage, const Tile&,
                                              uint32_t worker) {
    constexpr uint32_t BLOCK_PANELS = SCALES_BYTES / SCALE_PANEL_BYTES;
    const uint32_t lane = worker % 32;
    for (uint32_t i = worker / 32; i < BLOCK_PANELS; i += PREPARE_WARPS) {
        const uint4 found = ptx::load_shared_words(shared.scales(stage) + i * SCALE_PANEL_BYTES +
                                                   lane * 16);
        const uint32_t words[4] = {found.x, found.y, found.z, found.w};
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) {
            const uint32_t row = i / PANELS * SCALE_ROWS + 32 * j + lane;
            ptx::store_shared(shared.wide_scales(stage) + wide_scale_offset(row, i % PANELS),
                              make_uint2(widen_scales(words[j] << 4), widen_scales(words[j] >> 4)));
        }
    }
}
