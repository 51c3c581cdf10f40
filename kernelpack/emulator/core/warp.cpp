// Lanes that stand at different places: picked, joined, ended (machine/warp.py).
#include <algorithm>
#include <set>

#include "machine.hpp"

namespace kernelpack {

namespace {

// Join splits that stand at the same pc and have nothing pending.
void merge(Warp& warp) {
  std::map<int32_t, Split*> met;
  std::vector<std::unique_ptr<Split>> kept;
  const auto is_bound = [](const Split& split) { return split.token != 0 || split.remembered; };
  for (auto& split : warp.splits) {
    Split*& other = met[split->pc];
    if (!other || is_bound(*other) || is_bound(*split)) {
      if (!other) other = split.get();
      kept.push_back(std::move(split));
      continue;
    }
    other->mask = other->lanes() | split->lanes();
    other->every = other->mask == EVERY;
    other->waits = false;
    warp.ended.push_back(std::move(split));
  }
  warp.splits = std::move(kept);
}

}  // namespace

// The split to run: able to go on, not spinning if possible, lowest pc first.
static Split* pick(Warp& warp) {
  auto& splits = warp.splits;
  if (splits.size() > 1) {
    std::set<int32_t> places;
    for (const auto& split : splits) places.insert(split->pc);
    if (places.size() < splits.size()) merge(warp);
  }
  Split* chosen = nullptr;
  for (const auto& split : splits) {
    if (split->waits && !split->wait.ready()) continue;
    if (!chosen || std::pair(split->spins, split->pc) < std::pair(chosen->spins, chosen->pc))
      chosen = split.get();
  }
  if (chosen) chosen->waits = false;
  return chosen;
}

// No split can go on. What its own lanes wait for of each other comes by none of them.
static void stop(Warp& warp) {
  warp.waits_on.clear();
  for (const auto& split : warp.splits)
    if (split->waits && !split->wait.inner) warp.waits_on.push_back(split->wait.ready);
  warp.stopped = true;
  warp.asleep_at = warp.machine->changes;
}

// Whether one that could not go on cannot yet; it then is as after another turn.
static bool stands(Warp& warp) {
  if (!warp.stopped) return false;
  for (const auto& ready : warp.waits_on)
    if (ready()) return false;
  Machine& machine = *warp.machine;
  machine.current = &warp;
  warp.asleep_at = machine.changes;
  if (warp.splits.size() > 1) {
    warp.repeats = false;
    warp.dozes_on.clear();
    warp.turn_began = machine.changes;
  }
  return true;
}

// Whether the split is every lane of the warp that has not exited, and may still come.
static bool converged(const Warp& warp, const Split& split) {
  if (warp.splits.size() == 1 || split.lanes() == warp.alive) return true;
  const auto passed = warp.apart.find(split.pc);
  return passed != warp.apart.end() && !(warp.alive & ~(split.lanes() | passed->second));
}

// Lanes of a split exit; the others, if any, go on behind the exit.
static void leave(Warp& warp, Split& split, Mask lanes) {
  warp.alive &= ~lanes;
  Cluster& cluster = *warp.cta->cluster;
  int64_t arrived = 0;
  for (int lane = 0; lane < WIDTH; ++lane)
    arrived += (lanes >> lane & 1) && warp.arrivals[lane] == cluster.generation;
  const int64_t count = __builtin_popcount(lanes);
  cluster.leave(count, arrived);
  warp.cta->present -= count;
  for (size_t i = 0; i < warp.cta->on_leave.size(); ++i) warp.cta->on_leave[i]();
  const Mask rest = split.lanes() & ~lanes;
  if (rest) {
    split.mask = rest;
    split.every = false;
    ++split.pc;
    return;
  }
  const auto is_it = [&split](const std::unique_ptr<Split>& each) { return each.get() == &split; };
  const auto at = std::find_if(warp.splits.begin(), warp.splits.end(), is_it);
  warp.ended.push_back(std::move(*at));
  warp.splits.erase(at);
}

}  // namespace kernelpack
