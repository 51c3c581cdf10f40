// Barriers of a CTA and of a cluster, fences, launches that follow (semantics/barrier.py,
// cluster_barrier.py, memory.py, control.py).
#include <algorithm>

#include "machine.hpp"

namespace kernelpack {

namespace {

// -- barriers of a CTA (PTX ISA 9.7.13.1) -------------------------------------------------------

// Complete the barrier if enough threads have arrived.
void look(Cta& cta, NamedBarrier& barrier) {
  const int64_t expected = barrier.expected < 0 ? cta.present : barrier.expected;
  if (!barrier.arrived || barrier.arrived < expected) return;
  if (barrier.arrived > expected) doubt("more threads than a barrier expects");
  barrier.result[barrier.generation] = std::move(barrier.votes);
  barrier.result.erase(barrier.generation - 2);
  barrier.votes.clear();
  barrier.arrived = 0;
  ++barrier.generation;
  ++cta.machine->changes;
}

NamedBarrier& barrier_of(Cta& cta, int number) {
  const auto found = cta.named.find(number);
  if (found != cta.named.end()) return found->second;
  NamedBarrier& made = cta.named[number];
  cta.on_leave.push_back([&cta, &made] { look(cta, made); });
  return made;
}

// A warp arrives, and will wait or go on; the generation it belongs to. That all who wait come by
// one instruction (BARRIER_APART) is asked at the strict level alone, which is Python's.
int64_t arrive_at(Warp& warp, int64_t number, int64_t expected, int lanes, bool waits) {
  Cta& cta = *warp.cta;
  if (number > 15 || (expected >= 0 && (expected % WIDTH || !expected)))
    doubt("a barrier's operands");
  NamedBarrier& barrier = barrier_of(cta, static_cast<int>(number));
  if (barrier.arrived && barrier.expected != expected)
    doubt("warps disagree about a barrier's threads");
  barrier.expected = expected;
  const int64_t generation = barrier.generation;
  settle(warp);
  Bus& bus = cta.machine->bus;
  bus.arrived({warp.agent, static_cast<int>(number), generation, waits});
  bus.release({warp.agent, {Channel::BAR, cta.number, number, generation}});
  barrier.arrived += expected >= 0 ? WIDTH : lanes;
  look(cta, barrier);
  return generation;
}

// Whether the end of a generation is still to come; then the split waits for it.
bool is_to_come(Warp& warp, Split& split, int64_t number, int64_t generation) {
  NamedBarrier& barrier = barrier_of(*warp.cta, static_cast<int>(number));
  if (barrier.generation != generation) {
    warp.machine->bus.acquire({warp.agent, {Channel::BAR, warp.cta->number, number, generation}});
    return false;
  }
  split.wait_for([&barrier, generation] { return barrier.generation != generation; });
  return true;
}

int64_t uniform(Warp& warp, const Operand& operand, Mask mask) {
  uint32_t room[WIDTH];
  return values<uint32_t>(warp, operand.items[0], room)[first_lane(mask)];
}

int64_t count_of(Warp& warp, const Instr& instr, size_t values, Mask mask) {
  return values > 1 ? uniform(warp, instr.form->sources[1], mask) : -1;
}

Step synchronise(Warp& warp, Split& split, const Instr& instr, Mask mask) {
  const auto& sources = instr.form->sources;
  const int64_t number = uniform(warp, sources[0], mask);
  if (!split.token)
    split.token = 1 + arrive_at(warp, number, count_of(warp, instr, sources.size(), mask),
                                __builtin_popcount(mask), true);
  if (is_to_come(warp, split, number, split.token - 1)) return Step::WAIT;
  split.token = 0;
  return Step::DONE;
}

Step arrive_only(Warp& warp, Split&, const Instr& instr, Mask mask) {
  const auto& sources = instr.form->sources;
  arrive_at(warp, uniform(warp, sources[0], mask), count_of(warp, instr, sources.size(), mask),
            __builtin_popcount(mask), false);
  return Step::DONE;
}

enum Fold : int64_t { POPC, AND, OR };

Step reduce(Warp& warp, Split& split, const Instr& instr, Mask mask) {
  const auto& sources = instr.form->sources;
  const int64_t number = uniform(warp, sources[0], mask);
  if (!split.token) {
    NamedBarrier& barrier = barrier_of(*warp.cta, static_cast<int>(number));
    const Mask yes = predicate(warp, sources.back().items[0]) & mask;
    barrier.votes.emplace_back(__builtin_popcount(yes), __builtin_popcount(mask));
    split.token = 1 + arrive_at(warp, number, count_of(warp, instr, sources.size() - 1, mask),
                                __builtin_popcount(mask), true);
  }
  const int64_t generation = split.token - 1;
  if (is_to_come(warp, split, number, generation)) return Step::WAIT;
  split.token = 0;
  int yes = 0, total = 0;
  for (const auto& [some, all] : barrier_of(*warp.cta, static_cast<int>(number)).result[generation])
    yes += some, total += all;
  const Slot& to = instr.target();
  if (instr.arg[0] == POPC) {
    uint32_t found[WIDTH];
    std::fill(found, found + WIDTH, static_cast<uint32_t>(yes));
    put<uint32_t>(warp, to, found, mask);
  } else {
    const bool is_true = instr.arg[0] == AND ? yes == total : yes > 0;
    put_predicate(warp, to, is_true ? EVERY : 0, mask);
  }
  return Step::DONE;
}

bool prepare_sync(Instr& instr) {
  instr.control = synchronise;
  return true;
}

bool prepare_barrier_arrive(Instr& instr) {
  instr.control = arrive_only;
  return true;
}

bool prepare_reduce(Instr& instr) {
  instr.arg[0] = instr.form->has("popc") ? POPC : instr.form->has("and") ? AND : OR;
  instr.control = reduce;
  return true;
}

ROW("bar.sync barrier.sync bar.cta.sync barrier.cta.sync", prepare_sync);
ROW("bar.arrive barrier.arrive bar.cta.arrive barrier.cta.arrive", prepare_barrier_arrive);
ROW("bar.red barrier.red bar.cta.red barrier.cta.red", prepare_reduce);

// -- barrier of a cluster (9.7.13.3) ------------------------------------------------------------

Step cluster_arrive(Warp& warp, Split&, const Instr& instr, Mask mask) {
  Cluster& cluster = *warp.cta->cluster;
  int fresh = 0;
  for (Mask m = mask; m; m &= m - 1) {
    int64_t& mine = warp.arrivals[__builtin_ctz(m)];
    if (mine != NOT_ARRIVED) doubt("a second arrival at the cluster barrier");
    fresh += mine != cluster.generation;
    mine = cluster.generation;
  }
  settle(warp);
  warp.machine->bus.release({warp.agent,
                             {Channel::CLUSTER, cluster.key, cluster.generation, 0},
                             instr.arg[1] != 0,
                             Scope::CLUSTER});
  cluster.arrive(fresh);
  ++warp.machine->changes;
  return Step::DONE;
}

Step cluster_wait(Warp& warp, Split& split, const Instr&, Mask mask) {
  Cluster& cluster = *warp.cta->cluster;
  std::vector<int64_t> generations;
  for (Mask m = mask; m; m &= m - 1) {
    const int64_t mine = warp.arrivals[__builtin_ctz(m)];
    if (mine == cluster.generation) {
      const int64_t now = cluster.generation;
      split.wait_for([&cluster, now] { return cluster.generation != now; });
      return Step::WAIT;
    }
    if (mine == NOT_ARRIVED) doubt("a wait at the cluster barrier without an arrival");
    generations.push_back(mine);
  }
  std::sort(generations.begin(), generations.end());
  generations.erase(std::unique(generations.begin(), generations.end()), generations.end());
  for (int64_t generation : generations) {
    Acquire event{warp.agent, {Channel::CLUSTER, cluster.key, generation, 0}};
    event.scope = Scope::CLUSTER;
    warp.machine->bus.acquire(event);
  }
  for (Mask m = mask; m; m &= m - 1) warp.arrivals[__builtin_ctz(m)] = NOT_ARRIVED;
  return Step::DONE;
}

bool prepare_cluster_arrive(Instr& instr) {
  instr.arg[1] = instr.form->has("relaxed");
  instr.control = cluster_arrive;
  return true;
}

bool prepare_cluster_wait(Instr& instr) {
  instr.control = cluster_wait;
  return true;
}

ROW("barrier.cluster.arrive", prepare_cluster_arrive);
ROW("barrier.cluster.wait", prepare_cluster_wait);

// -- fences (9.7.13.4) --------------------------------------------------------------------------

void proxy_fence(Warp& warp, const Instr& instr, Mask mask) {
  if (!instr.arg[1]) return;
  warp.machine->bus.proxy_fence({warp.agent, instr.arg[1] != 0, instr.arg[2] != 0, mask});
}

bool prepare_proxy_fence(Instr& instr) {
  const Form& form = *instr.form;
  instr.arg[1] = form.has("async") || form.has("async::generic");
  instr.arg[1] = form.space != "global";
  instr.arg[2] = form.space != "shared";
  instr.run = proxy_fence;
  return true;
}

void fence(Warp& warp, const Instr& instr, Mask) {
  warp.machine->fenced = true;
  warp.machine->bus.fenced(
      {warp.agent, static_cast<Scope>(instr.arg[1]), instr.arg[2] != 0, instr.arg[3] != 0});
}

bool prepare_fence(Instr& instr) {
  const Form& form = *instr.form;
  const Scope scope = form.has("cta")       ? Scope::CTA
                      : form.has("cluster") ? Scope::CLUSTER
                                            : Scope::DEVICE;
  instr.arg[1] = static_cast<int64_t>(scope);
  instr.arg[2] = !form.has("release");
  instr.arg[3] = !form.has("acquire");
  instr.run = fence;
  return true;
}

ROW("fence.proxy", prepare_proxy_fence);
ROW("fence membar", prepare_fence);

// -- control (9.7.12, 9.7.19) -------------------------------------------------------------------

Step sleep(Warp&, Split& split, const Instr&, Mask) {
  ++split.spins;
  return Step::DONE;
}

Step launch_dependents(Warp& warp, Split&, const Instr&, Mask) {
  ++warp.machine->changes;
  return Step::DONE;
}

Step wait_for_launch(Warp&, Split&, const Instr&, Mask) { return Step::DONE; }

Step trap(Warp&, Split&, const Instr&, Mask) { doubt("a trap"); }

template <Control CONTROL>
bool prepare_control(Instr& instr) {
  instr.control = CONTROL;
  return true;
}

ROW("nanosleep pmevent", prepare_control<sleep>);
ROW("griddepcontrol.launch_dependents", prepare_control<launch_dependents>);
ROW("griddepcontrol.wait", prepare_control<wait_for_launch>);
ROW("trap brkpt", prepare_control<trap>);

}  // namespace

}  // namespace kernelpack
