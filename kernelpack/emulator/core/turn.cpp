// A warp's turn: its nodes run one after the other until it waits, yields or has had its share
// (emulator/turn.py).
#include <cstring>

#include "machine.hpp"

namespace kernelpack {

// Nodes that come after the node at `pc`, and from which no path leads back to it (paths.py).
class Paths {
public:
  bool is_behind(const Program& program, int32_t node, int32_t pc) {
    auto& found = behind_[pc];
    if (found.empty()) found = computed(program, pc);
    return found[node];
  }

private:
  using Arrows = std::vector<std::vector<int32_t>>;

  static std::vector<bool> reached(const Arrows& arrows, int32_t start) {
    std::vector<bool> seen(arrows.size());
    std::vector<int32_t> ahead = arrows[start];
    while (!ahead.empty()) {
      const int32_t at = ahead.back();
      ahead.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      ahead.insert(ahead.end(), arrows[at].begin(), arrows[at].end());
    }
    return seen;
  }

  static std::vector<bool> computed(const Program& program, int32_t pc) {
    const int32_t count = static_cast<int32_t>(program.nodes.size());
    Arrows after(count), before(count);
    for (int32_t at = 0; at < count; ++at) {
      after[at] = program.nodes[at].successors(at);
      for (int32_t next : after[at]) before[next].push_back(at);
    }
    std::vector<bool> found = reached(after, pc);
    const std::vector<bool> back = reached(before, pc);
    for (int32_t at = 0; at < count; ++at) found[at] = found[at] && !back[at];
    return found;
  }

  std::map<int32_t, std::vector<bool>> behind_;
};

// Gives turns to the warps of a machine.
class Turns {
public:
  explicit Turns(Machine& machine) : machine_(machine), program_(*machine.program) {}

  // Run at most `budget` nodes of a warp; how many were run.
  int64_t take(Warp& warp, int64_t budget) {
    if (warp.asleep_at == machine_.changes) return 0;
    machine_.current = &warp;
    warp.ended.clear();
    auto& splits = warp.splits;
    if (splits.size() == 1 && waits(*splits.front())) {
      stop(warp);
      return 0;
    }
    warp.stopped = false;
    warp.repeats = false;
    warp.dozes_on.clear();
    warp.turn_began = machine_.changes;
    int64_t moved = 0;
    Split* split = nullptr;
    while (moved < budget) {
      const bool is_in_one_piece = splits.size() == 1 && !splits.front()->waits;
      split = is_in_one_piece ? splits.front().get() : choose(warp);
      if (!split) {
        stop(warp);
        break;
      }
      const Node& node = program_.nodes[split->pc];
      if (warp.copy_due != NEVER) copy(warp);
      warp.kept.note_node(split->pc);
      if (!run(warp, *split, node)) {
        if (splits.size() == 1) break;
        continue;
      }
      warp.steps += node.count;
      machine_.step += node.count;
      ++moved;
      if ((node.yields || warp.repeats) && splits.size() <= 1) break;
    }
    if (moved >= budget && splits.size() > 1) let_others_go(warp, split);
    return moved;
  }

private:
  void copy(Warp& warp) {
    if (warp.copy_due == machine_.changes) warp.kept.keep();
    warp.copy_due = NEVER;
  }

  static bool waits(Split& split) {
    if (!split.waits) return false;
    if (!split.wait.ready()) return true;
    split.waits = false;
    return false;
  }

  // Lanes that only compute let the others of their warp go on, too.
  static void let_others_go(Warp& warp, Split* split) {
    for (const auto& each : warp.splits)
      if (each.get() == split) ++split->spins;
  }

  // The split to run; lanes of another one that waits for it may see that it will not come.
  Split* choose(Warp& warp) {
    Split* split = pick(warp);
    if (!split || (warp.meetings.empty() && warp.apart.empty())) return split;
    const Node::Of of = program_.nodes[split->pc].of;
    if (of == Node::EXIT || of == Node::BRANCH || of == Node::TABLE) return split;
    for (const auto& meeting : warp.meetings)
      if (paths_.is_behind(program_, split->pc, meeting->pc)) meeting->passed |= split->lanes();
    for (auto& [pc, passed] : warp.apart)
      if (paths_.is_behind(program_, split->pc, pc)) passed |= split->lanes();
    return split;
  }

  // Run a node; false when it waits.
  bool run(Warp& warp, Split& split, const Node& node) {
    switch (node.of) {
      case Node::BLOCK: block(warp, split, node); break;
      case Node::BRANCH: branch(warp, split, node); break;
      case Node::TABLE: branch_by_index(warp, split, node); break;
      case Node::EXIT: exit(warp, split, node); break;
      case Node::CONTROL:
        if (!control(warp, split, node)) return false;
        break;
      default: doubt("an instruction that the core does not run");
    }
    if (machine_.bus.log) machine_.bus.ran(warp.agent, node.first, node.count);
    return true;
  }

  static Mask chosen(Warp& warp, const Split& split, int32_t guard, bool is_negated) {
    if (guard < 0) return split.lanes();
    const Mask value = warp.predicate(guard);
    return (is_negated ? ~value : value) & split.lanes();
  }

  void block(Warp& warp, Split& split, const Node& node) {
    const Mask lanes = split.lanes();
    const bool may_land = !warp.landings.empty();
    const Instr* instr = &program_.instructions[node.first];
    for (const Instr* end = instr + node.count; instr != end; ++instr) {
      Mask mask = lanes;
      if (instr->guard >= 0) {
        const Mask value = warp.predicate(instr->guard);
        mask &= instr->guard_negated ? ~value : value;
      }
      warp.at = instr->at;
      if (may_land && !instr->late.empty()) {
        if (instr->is_copy && split.every && instr->guard < 0) {
          if (alias(warp, *instr)) continue;
        } else {
          land(warp, *instr);
        }
      }
      if (!instr->run) doubt("an instruction that the core does not run");
      instr->run(warp, *instr, mask);
    }
    ++split.pc;
  }

  // A move by reference is no use: what it makes is filled together with its source. Whether the
  // source is in flight; a destination that is in flight, and is overwritten, is so no longer.
  static bool alias(Warp& warp, const Instr& instr) {
    const Slot &to = instr.target(), &from = instr.source(0);
    const int32_t mine = warp.landing_of[to.index];
    if (mine >= 0) warp.landing_of[to.index] = -1;
    const int32_t number = from.index < 0 ? -1 : warp.landing_of[from.index];
    if (number < 0) return false;
    Landing& landing = *warp.landings.at(number);
    for (const auto& [index, row] : landing.registers) {
      if (index != from.index) continue;
      landing.registers.emplace_back(to.index, row);
      break;
    }
    warp.landing_of[to.index] = number;
    return true;
  }

  static void branch(Warp& warp, Split& split, const Node& node) {
    if (node.guard < 0) {
      split.pc = node.target;
      return;
    }
    const Mask taken = chosen(warp, split, node.guard, node.guard_negated);
    if (!taken) {
      ++split.pc;
    } else if (taken == split.lanes()) {
      split.pc = node.target;
    } else {
      split.mask = split.lanes() & ~taken;
      split.every = false;
      ++split.pc;
      warp.splits.push_back(apart_of(node.target, taken, split.spins));
    }
  }

  static std::unique_ptr<Split> apart_of(int32_t pc, Mask mask, int64_t spins) {
    auto made = std::make_unique<Split>();
    made->pc = pc;
    made->mask = mask;
    made->every = mask == EVERY;
    made->spins = spins;
    return made;
  }

  // `brx.idx`: each lane goes to the target that its index names (PTX ISA 9.7.12.4).
  static void branch_by_index(Warp& warp, Split& split, const Node& node) {
    const Mask lanes = chosen(warp, split, node.guard, node.guard_negated);
    const uint32_t* index = warp.lanes<uint32_t>(node.index_register);
    const Mask rest = split.lanes() & ~lanes;
    std::vector<std::unique_ptr<Split>> made;
    if (rest) made.push_back(apart_of(split.pc + 1, rest, split.spins));
    std::map<uint32_t, Mask> there;
    for (Mask m = lanes; m; m &= m - 1) there[index[__builtin_ctz(m)]] |= m & -m;
    for (const auto& [each, mask] : there) {
      if (each >= node.targets.size()) doubt("an index of no branch target");
      made.push_back(apart_of(node.targets[each], mask, split.spins));
    }
    for (size_t i = 0; i < warp.splits.size(); ++i) {
      if (warp.splits[i].get() != &split) continue;
      warp.ended.push_back(std::move(warp.splits[i]));
      warp.splits.erase(warp.splits.begin() + i);
      warp.splits.insert(warp.splits.begin() + i, std::make_move_iterator(made.begin()),
                         std::make_move_iterator(made.end()));
      return;
    }
  }

  void exit(Warp& warp, Split& split, const Node& node) {
    const Mask lanes = chosen(warp, split, node.guard, node.guard_negated);
    if (!lanes) {
      ++split.pc;
      return;
    }
    settle(warp);
    leave(warp, split, lanes);
    ++machine_.changes;
  }

  bool control(Warp& warp, Split& split, const Node& node) {
    const Instr& instr = program_.instructions[node.first];
    if (!instr.control) doubt("an instruction that the core does not run");
    warp.at = instr.at;
    if (instr.converged && !meet_all(warp, split)) return false;
    const Mask mask = chosen(warp, split, instr.guard, instr.guard_negated);
    if (!mask) {
      ++split.pc;
      return true;
    }
    if (!instr.delayed && !warp.landings.empty() && !instr.late.empty()) land(warp, instr);
    if (instr.control(warp, split, instr, mask) == Step::WAIT) return false;
    ++split.pc;
    return true;
  }

  // Whether all lanes of the warp are here; else the split waits for the others.
  static bool meet_all(Warp& warp, Split& split) {
    if (!converged(warp, split)) {
      warp.apart.emplace(split.pc, 0);
      Warp* whose = &warp;
      Split* mine = &split;
      split.wait_for([whose, mine] { return converged(*whose, *mine); }, false, true);
      return false;
    }
    const auto passed = warp.apart.find(split.pc);
    if (passed != warp.apart.end()) {
      if (passed->second & ~split.lanes())
        doubt("lanes go on without an instruction of the whole warp");
      warp.apart.erase(passed);
    }
    return true;
  }

  Machine& machine_;
  const Program& program_;
  Paths paths_;
};

void land(Warp& warp, const Instr& instr) {
  for (int32_t index : instr.late)
    if (warp.landing_of[index] >= 0) doubt("a register that is still being filled is used");
}

}  // namespace kernelpack
