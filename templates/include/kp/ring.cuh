// A ring of stages between one who fills and one who drains: where each of them is.
// Each side has its own Ring; they meet in two barriers a stage, full and empty.
#pragma once
#include <cuda/std/cstdint>

namespace kp {

template <uint32_t STAGES>
struct Ring {
    uint32_t stage = 0;
    uint32_t phase = 0;  // parity of the rounds made; the drainer waits for full of this parity

    // The filler waits for empty of this parity: in the first round every stage is free.
    __device__ __forceinline__ uint32_t free_phase() const { return phase ^ 1; }

    __device__ __forceinline__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
};

}  // namespace kp
