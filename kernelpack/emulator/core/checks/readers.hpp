// Who read each cell of global memory: the last two agents that did (checks/readers.py).
#pragma once

#include "accesses.hpp"
#include "field.hpp"

namespace kernelpack::checks {

class Readers {
public:
  bool is_used() const { return static_cast<bool>(last_); }
  const uint32_t* last() const { return last_.get(); }
  const uint32_t* other() const { return other_.get(); }
  // Whether anybody read between these cells, as far as can be told quickly.
  bool may_have_read(const Extent& where) const { return is_used() && last_.used().meets(where); }

  void note(const Cells& cells, size_t most, uint32_t number, const Accesses& reads) {
    if (!is_used()) {
      last_ = Field<uint32_t>(most);
      other_ = Field<uint32_t>(most);
    }
    const uint32_t* last = last_.get();
    const uint32_t first = last[cells.at[0]];
    const bool differ = cells.any(last, [first](uint32_t number) { return number != first; });
    if (differ || (first != NOBODY && reads[first].agent != reads[number].agent))
      push(cells, number, reads);
    last_.set(cells, number);
  }

private:
  // The last reader of each cell is the other one now, where it is another agent.
  void push(const Cells& cells, uint32_t number, const Accesses& reads) {
    const int32_t agent = reads[number].agent;
    const uint32_t* last = last_.get();
    uint32_t same = NOBODY;  // one that is of this agent, seen just now
    for (size_t i = 0; i < cells.count; ++i) {
      const uint32_t before = last[cells.at[i]];
      if (before == NOBODY || before == same) continue;
      if (reads[before].agent == agent)
        same = before;
      else
        other_.set(cells.at[i], before);
    }
  }

  Field<uint32_t> last_, other_;
};

}  // namespace kernelpack::checks
