// Warpgroups take turns at what only one of them can use at a time, in a ring, so that they drift
// apart: while one has the tensor cores, the others prepare what they will bring.
// Every one of them takes as many turns as the others.
#pragma once
#include <kp/ptx/barrier.cuh>

namespace kp {

// TAKERS warpgroups use as many barriers of the CTA, from FIRST_BARRIER; one has no turns.
template <uint32_t TAKERS, uint32_t FIRST_BARRIER>
class Turns {
  public:
    __device__ __forceinline__ explicit Turns(uint32_t warpgroup)
        : own(FIRST_BARRIER + warpgroup), next(FIRST_BARRIER + (warpgroup + 1) % TAKERS) {
        if (warpgroup == TAKERS - 1) pass();
    }

    __device__ __forceinline__ void wait() const {
        if (TAKERS > 1) ptx::barrier_sync(own, PAIR);
    }

    __device__ __forceinline__ void pass() const {
        if (TAKERS > 1) ptx::barrier_arrive(next, PAIR);
    }

  private:
    static constexpr uint32_t PAIR = 2 * 128;  // threads that meet: who passes, and who waits
    uint32_t own, next;
};

}  // namespace kp
