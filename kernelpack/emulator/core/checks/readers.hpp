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
    const bool differ = cells.any_other(last, first);
    if (differ || (first != NOBODY && reads[first].agent != reads[number].agent))
      push(cells, number, reads);
    last_.set(cells, number);
  }

private:
  // The last reader of each cell is the other one now, where it is another agent; neighbours mostly
  // have the same.
  void push(const Cells& cells, uint32_t number, const Accesses& reads) {
    const uint32_t* last = last_.get();
    for (size_t i = 0, next = 0; i < cells.count; i = next) {
      const uint32_t before = last[cells.at[i]];
      for (next = i + 1; next < cells.count && last[cells.at[next]] == before; ++next) continue;
      if (before != NOBODY && reads[before].agent != reads[number].agent)
        other_.set(Cells(cells.at + i, next - i), before);
    }
  }

  Field<uint32_t> last_, other_;
};

}  // namespace kernelpack::checks
