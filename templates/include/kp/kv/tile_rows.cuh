// The virtual rows of a KV tile of BN tokens, in runs of STEP contiguous rows; an operand's
// `populate` returns it. STEP is the height of a TMA box: BN for storages without pages, otherwise
// a divisor of the page, at most BN.
#pragma once
#include <cuda/std/cstdint>

namespace kp::kv {

template <uint32_t BN, uint32_t STEP>
struct TileRows {
    static_assert(BN % STEP == 0, "a tile is whole runs");
    static constexpr uint32_t RUNS = BN / STEP;

    int32_t first[RUNS];  // of each run; `num_kv_rows` after the end, where maps read zeros

    // The virtual row of a row of the tile.
    __device__ __forceinline__ int32_t get_row(uint32_t offset) const {
        return first[offset / STEP] + int32_t(offset % STEP);
    }
};

}  // namespace kp::kv
