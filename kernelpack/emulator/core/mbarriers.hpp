// The mbarriers of a cluster: found, and changed by warps and units (semantics/mbarrier.py, and
// models/mbarrier.py for what becomes of the counts). PTX ISA 9.7.13.15.
#pragma once

#include "machine.hpp"

namespace kernelpack {

// Who does something for a warp that asked for it: a unit's agent, or the warp's own.
struct Doer {
  int agent;
  Warp* warp;
  Proxy proxy = Proxy::ASYNC;
};

namespace mbarrier {

constexpr int64_t LIMIT = (1 << 20) - 1;  // of a count, and of the size of a tx-count (9.7.13.15.2)
constexpr uint32_t BYTES = 8;

struct Place {
  Cta* cta = nullptr;
  uint32_t offset = 0;
  MBarrier* state = nullptr;
};

// What an update found.
struct Before {
  int64_t phase, pending;
};

inline uint32_t offset_of(uint64_t address) { return static_cast<uint32_t>(address) & OFFSET_MASK; }
inline uint32_t rank_of(uint64_t address) {
  return static_cast<uint32_t>(address >> RANK_SHIFT) & 0xff;
}

// The mbarrier at a shared address; the checks hear of a warp's first use.
Place find(Warp& warp, uint64_t address);

inline Channel channel(const Place& at, int64_t phase) {
  return Channel{Channel::MBARRIER, at.cta->number, at.offset, phase};
}

// -- counts ------------------------------------------------------------------------------------

inline void settle(MBarrier& state) {
  if (state.pending != 0 || state.tx != 0) return;
  state.pending = state.expected;
  ++state.phase;
}

inline void check_count(const MBarrier& state, int64_t count) {
  if (count < 1 || count > state.pending) doubt("more arrivals at an mbarrier than are pending");
}

inline void arrive(MBarrier& state, int64_t count) {
  check_count(state, count);
  state.pending -= count;
  settle(state);
}

inline void expect_tx(MBarrier& state, int64_t units) {
  state.tx += units;
  if (state.tx > LIMIT || state.tx < -LIMIT) doubt("a tx-count out of its range");
}

inline void complete_tx(MBarrier& state, int64_t units) {
  expect_tx(state, -units);
  settle(state);
}

// Whether so many arrivals are of one phase, so that their order is of no account.
inline bool fits(const MBarrier& state, int64_t arrivals) {
  return 0 < arrivals && arrivals <= state.pending;
}

// -- changes that the checks hear of -----------------------------------------------------------

// Change an mbarrier for an agent, whose past goes into the current phase.
template <typename Change>
Before update(const Place& at, int agent, Change change, bool relaxed = false,
              Scope scope = Scope::CLUSTER, Mask by = EVERY) {
  MBarrier& state = *at.state;
  if (!state.is_there) doubt("an mbarrier that is none any more");
  const Before before{state.phase, state.pending};
  Release told{agent, channel(at, before.phase)};
  told.relaxed = relaxed;
  told.scope = scope;
  told.tolerated = true;
  told.by = by;
  at.cta->machine->bus.release(told);
  change(state);
  ++at.cta->machine->changes;
  return before;
}

inline Before update_arrive(const Place& at, int agent, int64_t count) {
  return update(at, agent, [count](MBarrier& state) { arrive(state, count); });
}

// A copy of so many bytes is done: complete_tx.
void complete(Cta& cta, uint32_t offset, const Doer& doer, int64_t size);

// Arrivals of one instruction must be of one phase of each mbarrier (mbarrier.Together).
class Together {
public:
  void look(const MBarrier* state, int64_t phase) {
    for (int i = 0; i < count_; ++i) {
      if (first_[i].state != state) continue;
      if (first_[i].phase != phase) doubt("lanes of one instruction arrive in two phases");
      return;
    }
    first_[count_++] = {state, phase};
  }

private:
  struct First {
    const MBarrier* state;
    int64_t phase;
  };
  First first_[WIDTH];
  int count_ = 0;
};

}  // namespace mbarrier
}  // namespace kernelpack
