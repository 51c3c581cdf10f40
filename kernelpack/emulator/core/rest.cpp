// Which warps are at rest: nothing comes of them until something else changes (emulator/rest.py).
#include <unordered_map>
#include <unordered_set>

#include "machine.hpp"

namespace kernelpack {

void KeptRegisters::begin(const Program& program, const Room& file) {
  program_ = &program;
  file_ = &file;
}

void KeptRegisters::keep() {
  if (!round_) {
    node_rounds_.assign(program_->nodes.size(), 0);
    register_rounds_.assign(program_->widths.size(), 0);
  }
  is_on_ = true;
  ++round_;
  saved_.clear();
  values_.clear();
}

void KeptRegisters::save_all(int32_t node) {
  for (int32_t index : program_->writes[node])
    if (register_rounds_[index] != round_) save(index);
}

void KeptRegisters::save(int32_t index) {
  register_rounds_[index] = round_;
  const uint32_t width = program_->widths[index], bytes = width == 1 ? sizeof(Mask) : 4 * width;
  const uint32_t offset = program_->offsets[index];
  saved_.push_back({offset, bytes, static_cast<uint32_t>(values_.size())});
  values_.insert(values_.end(), file_->data() + offset, file_->data() + offset + bytes);
}

bool KeptRegisters::are() const {
  for (const Saved& one : saved_)
    if (std::memcmp(file_->data() + one.offset, values_.data() + one.at, one.bytes)) return false;
  return is_on_;
}

class Rest {
public:
  explicit Rest(Machine& machine) : machine_(machine) {}

  std::unordered_set<int> presumed;  // agents

  // Look at a warp after a round in which nothing changed; whether it is at rest.
  bool look(Warp& warp) {
    if (!warp.dozes_on.empty()) return true;
    const auto seen = seen_.find(warp.agent);
    const bool is_watched = seen != seen_.end() && seen->second.changes == machine_.changes;
    if (warp.asleep_at == machine_.changes && !is_watched) return true;
    if (watch(warp) || all_stand(warp)) {
      presumed.erase(warp.agent);
      return true;
    }
    return waits_for_a_time(warp) || presumed.count(warp.agent);
  }

  // Whether a warp that is at rest will be for ever, if nothing else changes.
  bool is_certain(const Warp& warp) const {
    const auto seen = seen_.find(warp.agent);
    if (seen != seen_.end() && seen->second.changes == machine_.changes && seen->second.is_circle)
      return true;
    for (const auto& split : warp.splits)
      if (!split->waits || split->wait.spurious) return false;
    return true;
  }

  // A warp changed something, or ended.
  void forget(Warp& warp) {
    warp.kept.forget();
    if (!presumed.empty()) presumed.erase(warp.agent);
    if (!seen_.empty()) seen_.erase(warp.agent);
    if (!timed_.empty()) timed_.erase(warp.agent);
  }

  // Whether a warp stands where it stood before, ran since, and nothing has changed.
  bool watch(Warp& warp) {
    const auto found = seen_.find(warp.agent);
    if (found == seen_.end() || found->second.changes != machine_.changes) {
      seen_[warp.agent] = seen_now(warp, 1);
      return false;
    }
    Seen& seen = found->second;
    if (seen.is_circle || seen.steps == warp.steps) return seen.is_circle;
    seen.steps = warp.steps;
    if (stand(warp) == seen.stand && warp.kept.are()) {
      seen.is_circle = warp.local.size <= LOCAL_KEPT;
      return seen.is_circle;
    }
    if (++seen.looks == seen.kept) seen_[warp.agent] = seen_now(warp, 2 * seen.kept);
    return false;
  }

private:
  static constexpr uint64_t LOCAL_KEPT = 1 << 16;
  static constexpr int TIMED_TURNS = 8;

  struct Seen {
    int64_t changes = 0, steps = 0;
    std::vector<int64_t> stand;
    int64_t kept = 1, looks = 0;
    bool is_circle = false;
  };
  struct Timed {
    int64_t changes, reads, turns;
  };

  bool waits_for_a_time(const Warp& warp) {
    const int64_t now = machine_.changes;
    const auto found = timed_.find(warp.agent);
    const Timed before = found == timed_.end() ? Timed{now, warp.clock_reads, 0} : found->second;
    const bool is_one = before.changes == now && warp.clock_reads > before.reads;
    const int64_t turns = is_one ? before.turns + 1 : 0;
    timed_[warp.agent] = {now, warp.clock_reads, turns};
    return turns >= TIMED_TURNS;
  }

  // Where it is. Nothing but its own steps changes its registers until something else changes.
  Seen seen_now(Warp& warp, int64_t kept) const {
    Seen seen;
    seen.changes = machine_.changes;
    seen.steps = warp.steps;
    seen.stand = stand(warp);
    warp.copy_due = machine_.changes;
    seen.kept = kept;
    return seen;
  }

  // Whether every lane of a warp waits or polls.
  static bool all_stand(const Warp& warp) {
    for (const auto& split : warp.splits)
      if (split->waits ? split->wait.ready() : !only_polls(warp, *split)) return false;
    return true;
  }

  // All of a warp that decides what it does next, but for its registers.
  static std::vector<int64_t> stand(const Warp& warp) {
    int64_t least = 0;
    for (size_t i = 0; i < warp.splits.size(); ++i)
      least = i ? std::min(least, warp.splits[i]->spins) : warp.splits[i]->spins;
    std::vector<int64_t> found{warp.clock_reads};
    for (const auto& split : warp.splits)
      for (int64_t each :
           {int64_t{split->pc}, int64_t{split->lanes()}, int64_t{!split->waits}, split->token,
            reinterpret_cast<int64_t>(split->remembered.get()), split->spins - least})
        found.push_back(each);
    if (warp.local.size <= LOCAL_KEPT && warp.local_bytes) {
      uint64_t sum = 0;
      for (uint64_t i = 0; i < warp.local.size; ++i)
        sum = sum * 1099511628211ull + warp.local.bytes[i];
      found.push_back(static_cast<int64_t>(sum));
    }
    return found;
  }

  Machine& machine_;
  std::unordered_map<int, Seen> seen_;
  std::unordered_map<int, Timed> timed_;
};

}  // namespace kernelpack
