// The sequence of a new token in a ragged (varlen) batch, found by the first token of each
// sequence.
#pragma once
#include <cuda/std/cstdint>

namespace kp::kv {

// The first sequence b with row_offsets[b] <= token < row_offsets[b + 1], or `sequences`. All lanes
// of a warp call it. Offsets after that sequence may be any numbers.
__device__ __forceinline__ uint32_t find_sequence(const uint32_t* row_offsets, uint32_t sequences,
                                                  uint32_t token) {
    for (uint32_t first = 0; first < sequences; first += 32) {
        const uint32_t b = first + threadIdx.x % 32;
        const bool is_its = b < sequences && row_offsets[b] <= token && token < row_offsets[b + 1];
        const uint32_t found = __ballot_sync(0xffffffff, is_its);
        if (found) return first + __ffs(found) - 1;
    }
    return sequences;
}

}  // namespace kp::kv
