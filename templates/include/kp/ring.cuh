// Pipeline state of a multi-stage ring buffer between a producer and a consumer: stage and phase.
// Each side keeps its own Ring. They synchronise through two mbarriers a stage, full and empty.
#pragma once
#include <cuda/std/cstdint>

namespace kp {

template <uint32_t STAGES>
struct Ring {
    uint32_t stage = 0;
    uint32_t phase = 0;  // parity of the round; the consumer waits for full with this parity

    // The producer waits for empty with this parity: in the first round every stage is free.
    __device__ __forceinline__ uint32_t free_phase() const { return phase ^ 1; }

    __device__ __forceinline__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
};

}  // namespace kp
