// What fences ordered (checks/channels.py, Fences): by kind of memory, up to where generic accesses
// come before asynchronous ones; by scope, what a relaxed release makes known that far.
#pragma once

#include "../events.hpp"
#include "clock.hpp"

namespace kernelpack::checks {

constexpr int OF_SHARED = 0, OF_GLOBAL = 1, OF_SCOPES = 2;  // then a kind for each scope
constexpr int FENCE_KINDS = OF_SCOPES + 3;

struct Row {
  int refs = 0;
  Clock clock;  // its causal row
};

// Two that Python holds to be the same object have the same `same`: it asks (`is`) which scopes one
// fence was for. Values may be shared beyond that.
struct Fence {
  Shared<Row> row;
  int64_t same = 0;
};

struct FenceSet {
  int refs = 0;
  Fence of[FENCE_KINDS];
  FenceSet() = default;
  FenceSet(const FenceSet& o) : refs(0) { std::copy(o.of, o.of + FENCE_KINDS, of); }
};

class Fences {
public:
  const Clock* of(int kind) const {
    return set_ && set_->of[kind].row ? &set_->of[kind].row->clock : nullptr;
  }
  const Fence* scope(int scope) const {
    const Fence* fence = set_ ? &set_->of[OF_SCOPES + scope] : nullptr;
    return fence && fence->row ? fence : nullptr;
  }
  void clear() { set_ = {}; }

  // These kinds, from first to last, are as an agent knows now.
  void put(int first, int last, const Clock& known) {
    FenceSet& mine = own();
    const Fence fence{Shared<Row>(new Row{0, known}), next()};
    for (int kind = first; kind <= last; ++kind) mine.of[kind] = fence;
  }

  // The later of both, kind by kind.
  void join(const Fences& o) {
    if (!o.set_ || set_ == o.set_) return;
    if (!set_ || is_of(o)) {
      set_ = o.set_;
      return;
    }
    for (int kind = 0; kind < FENCE_KINDS; ++kind) join_kind(kind, o.set_->of[kind]);
  }

private:
  static int64_t next() {
    static thread_local int64_t count = 0;
    return ++count;
  }
  FenceSet& own() {
    if (!set_) set_ = Shared<FenceSet>(new FenceSet);
    if (!set_.is_alone()) set_ = Shared<FenceSet>(new FenceSet(*set_));
    return *set_;
  }
  // Whether the other set holds what this one does, and perhaps further kinds.
  bool is_of(const Fences& o) const {
    for (int kind = 0; kind < FENCE_KINDS; ++kind) {
      const Fence &mine = set_->of[kind], &theirs = o.set_->of[kind];
      if (mine.row && mine.same != theirs.same) return false;
    }
    return true;
  }
  void join_kind(int kind, const Fence& theirs) {
    const Fence& before = set_->of[kind];
    if (!theirs.row || before.same == theirs.same) return;
    Fence& mine = own().of[kind];
    if (!mine.row) {
      mine = theirs;
      return;
    }
    mine.same = next();
    if (mine.row == theirs.row || mine.row->clock.covers(theirs.row->clock, CAUSAL)) return;
    if (theirs.row->clock.covers(mine.row->clock, CAUSAL)) {
      mine.row = theirs.row;
      return;
    }
    Shared<Row> row(new Row{0, mine.row->clock});
    row->clock.learn(theirs.row->clock);
    mine.row = row;
  }

  Shared<FenceSet> set_;
};

}  // namespace kernelpack::checks
