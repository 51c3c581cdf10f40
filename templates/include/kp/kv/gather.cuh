// TMA gather (gather4) of KV rows, each named, issued by one producer thread. Columns go in groups
// as wide as the box, stored one after another: each [HEIGHT rows x COLUMN_BYTES]. Only on
// Blackwell; on Hopper rows are copied from `row_ptr`.
#pragma once
#include <cuda/std/cstdint>
#include <kp/ptx/tma_gather.cuh>

namespace kp::kv {

// Four rows, `row` to `row + 3` of a tile of HEIGHT, in GROUPS column groups from element `column`
// on. 4 * COLUMN_BYTES bytes of each group complete on `barrier`. A row outside the tensor, such as
// -1, is zeros. Maps: `maps.gather4`, `maps.rope_gather4`.
template <class Element, uint32_t HEIGHT, uint32_t COLUMN_BYTES, uint32_t GROUPS>
__device__ __forceinline__ void gather_four(uint32_t shared, const TensorMap& map, uint32_t barrier,
                                            int4 rows, uint32_t row, uint32_t column = 0) {
    static_assert(HEIGHT % 4 == 0, "rows come in fours");
    static_assert(COLUMN_BYTES % 32 == 0, "each four begin at a multiple of 128 bytes");
    constexpr uint32_t WIDTH = COLUMN_BYTES / sizeof(Element);
#pragma unroll
    for (uint32_t group = 0; group < GROUPS; ++group)
        ptx::tma_gather4(shared + (group * HEIGHT + row) * COLUMN_BYTES, map, barrier,
                         column + group * WIDTH, rows);
}

}  // namespace kp::kv
