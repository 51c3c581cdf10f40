// The tensor pipe of a CTA or of a pair, as one thread uses it (semantics/tensor_pipe.py).
//
// The pipe does its operations in order. But what one thread issued is ordered with what another
// one issued by the pairs of PTX ISA 9.7.16.6.2 alone, so each thread that issues is an agent of
// its own, and an operation says which kinds before it it runs behind.
#pragma once

#include "tensor_areas.hpp"

namespace kernelpack {

// Kinds of a stage: copies, and products by accumulator and shape.
constexpr int64_t STAGE_COPY = 0;
inline int64_t stage_of_product(uint32_t d, int m, int n) {
  return int64_t{1} << 60 | int64_t{m} << 48 | int64_t{n} << 36 | d;
}

struct Pipe {
  Warp* warp;
  Cta* lead;
  int agent;

  OperationPtr issue(std::function<void()> effect, const Stage* stage,
                     bool harmless = false) const {
    Engine::How how;
    how.queue = {QueueKey::PIPE, lead->number};
    how.stage = stage;
    how.harmless = harmless;
    return warp->machine->engine.issue(*warp, agent, std::move(effect), how);
  }
};

inline Pipe pipe_of(Warp& warp, int lane, bool is_pair) {
  Cta* lead = members(*warp.cta, is_pair).ctas[0];
  return {&warp, lead, warp.cta->agent(Cta::Agent::PIPE, warp.index, lane)};
}

}  // namespace kernelpack
