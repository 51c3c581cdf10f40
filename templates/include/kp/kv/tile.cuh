// TMA loads and stores of KV tiles, issued by one thread. Columns go in blocks as wide as the box,
// stored one after another: each [BN rows x COLUMN_BYTES], with the map's swizzle.
#pragma once
#include <cuda/std/cstdint>
#include <kp/kv/tile_rows.cuh>
#include <kp/ptx/tma.cuh>
#include <kp/ptx/tma_store.cuh>

namespace kp::kv {

// Column blocks of a head, from element `column` on. BN * COLUMN_BYTES bytes of each block complete
// on `barrier`, including rows after the end, which are zeros. Maps: `maps.tile`, `maps.rope_tile`.
template <class Element, uint32_t COLUMN_BYTES, uint32_t BLOCKS, uint32_t BN, uint32_t STEP>
__device__ __forceinline__ void load_tile(uint32_t shared, const TensorMap& map, uint32_t barrier,
                                          const TileRows<BN, STEP>& rows, uint32_t head,
                                          uint32_t column = 0) {
    constexpr uint32_t WIDTH = COLUMN_BYTES / sizeof(Element);
#pragma unroll
    for (uint32_t block = 0; block < BLOCKS; ++block)
#pragma unroll
        for (uint32_t run = 0; run < BN / STEP; ++run)
            ptx::tma_load(shared + (block * BN + run * STEP) * COLUMN_BYTES, map, barrier,
                          column + block * WIDTH, head, rows.first[run]);
}

// The coordinates of a clipped tile of BN rows that has `count` rows of a head from `row` on. The
// other rows are outside the map: a load reads zeros, a store skips them. Map: `maps.ragged_tile`.
struct ClippedStart {
    int32_t inner, outer;

    __device__ __forceinline__ ClippedStart(uint32_t tile_rows, uint32_t heads, uint32_t head,
                                            uint32_t row, uint32_t count)
        : inner(tile_rows - count), outer((row + count) * heads + head) {}
};

__device__ __forceinline__ void load_clipped(uint32_t shared, const TensorMap& map,
                                             uint32_t barrier, const ClippedStart& start,
                                             uint32_t column) {
    ptx::tma_load(shared, map, barrier, column, start.inner, start.outer);
}

__device__ __forceinline__ void store_clipped(const TensorMap& map, uint32_t shared,
                                              const ClippedStart& start, uint32_t column) {
    ptx::tma_store(map, shared, column, start.inner, start.outer);
}

}  // namespace kp::kv
