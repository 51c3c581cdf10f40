// mbarrier.test_wait and try_wait (PTX ISA 9.7.13.15.16; semantics/mbarrier_wait.py and
// machine/polls.py are the definition).
#include "mbarriers.hpp"

namespace kernelpack {
namespace {

using mbarrier::Place;

// How often a lazy schedule lets a `try_wait` answer before its phase completes.
constexpr double EARLY_ANSWERS = 0.2;

// How a wait is written, in `Instr::arg[0]`.
constexpr int64_t BY_PARITY = 1, SUSPENDS = 2, WAIT_RELAXED = 4, WAIT_OF_CLUSTER = 8;

// A phase of an mbarrier, by its parity or by a token. Small enough for a std::function to keep.
template <bool by_parity>
bool passed(const MBarrier* state, uint64_t value) {
  if (!state->is_there) doubt("a wait on an mbarrier that is none any more");
  if (by_parity) return ((state->phase ^ static_cast<int64_t>(value)) & 1) != 0;
  return state->phase > static_cast<int64_t>(value >> 20);
}

// What lanes ask for: each mbarrier and phase once, in the order of lanes. Mostly it is one.
struct Question {
  Place at;
  uint64_t address, value;
  Mask lanes;
  bool done;
};

struct Questions {
  Question all[WIDTH];
  int count = 0;

  bool any() const {
    for (int i = 0; i < count; ++i)
      if (all[i].done) return true;
    return false;
  }
  Mask done() const {
    Mask lanes = 0;
    for (int i = 0; i < count; ++i) lanes |= all[i].done ? all[i].lanes : 0;
    return lanes;
  }
};

template <typename T>
void gather(Mask mask, const uint64_t* at, const T* value, Questions& found) {
  for (Mask left = mask; left;) {
    const int first = first_lane(left);
    Mask same = 0;
    for (int lane = first; lane < WIDTH; ++lane)
      if (at[lane] == at[first] && value[lane] == value[first]) same |= Mask{1} << lane;
    found.all[found.count++] = {{}, at[first], value[first], same & mask, false};
    left &= ~same;
  }
}

// The lanes that wait, EVERY where they are all that there are.
Mask who_waits(const Warp& warp, Mask mask) { return mask == warp.alive ? EVERY : mask; }

// The waiter knows now what was released to the phase that ended last. Whether it may have missed
// others is a question of the strict level, which is Python's.
void acquire_phase(Warp& warp, const Place& at, int64_t how, Mask by) {
  Acquire event{warp.agent, mbarrier::channel(at, at.state->phase - 1)};
  event.relaxed = how & WAIT_RELAXED;
  event.scope = how & WAIT_OF_CLUSTER ? Scope::CLUSTER : Scope::CTA;
  event.by = by;
  warp.machine->bus.acquire(event);
}

template <bool by_parity>
std::function<bool()> any_passed(const Questions& found) {
  if (found.count == 1) {
    const MBarrier* state = found.all[0].at.state;
    const uint64_t value = found.all[0].value;
    return [state, value] { return passed<by_parity>(state, value); };
  }
  std::vector<std::pair<const MBarrier*, uint64_t>> all;
  for (int i = 0; i < found.count; ++i) all.emplace_back(found.all[i].at.state, found.all[i].value);
  return [all] {
    for (const auto& [state, value] : all)
      if (passed<by_parity>(state, value)) return true;
    return false;
  };
}

// Whether every mbarrier is still there, and in the phase that was asked for.
template <bool by_parity>
std::function<bool()> none_passed(const Questions& found) {
  if (found.count == 1) {
    const MBarrier* state = found.all[0].at.state;
    const uint64_t value = found.all[0].value;
    return [state, value] { return state->is_there && !passed<by_parity>(state, value); };
  }
  std::vector<std::pair<const MBarrier*, uint64_t>> all;
  for (int i = 0; i < found.count; ++i) all.emplace_back(found.all[i].at.state, found.all[i].value);
  return [all] {
    for (const auto& [state, value] : all)
      if (!state->is_there || passed<by_parity>(state, value)) return false;
    return true;
  };
}

// What was asked, so that two questions are the same bytes if they are in Python: there, the
// addresses and phases of all lanes.
std::vector<uint8_t> spelled(const Questions& found, Mask mask, const uint64_t* at) {
  uint64_t words[2 * WIDTH];
  int count = 0;
  if (found.count == 1) {
    words[count++] = static_cast<uint64_t>(__builtin_popcount(mask)) << 32 | found.all[0].address;
    words[count++] = found.all[0].value;
  } else {
    for (Mask left = mask; left; left &= left - 1) {
      const int lane = first_lane(left);
      words[count++] = at[lane];
      for (int i = 0; i < found.count; ++i)
        if (found.all[i].lanes >> lane & 1) words[count++] = found.all[i].value;
    }
  }
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(words);
  return std::vector<uint8_t>(bytes, bytes + 8 * count);
}

bool answers_early(Warp& warp, const Split& split) {
  if (split.token == TOKEN_NOT_YET) return true;
  Machine& machine = *warp.machine;
  return machine.engine.tempo == Tempo::LAZY && machine.rng.real() < EARLY_ANSWERS;
}

template <bool by_parity>
Step run_wait(Warp& warp, Split& split, const Instr& instr, Mask mask) {
  using Value = std::conditional_t<by_parity, uint32_t, uint64_t>;
  const int64_t how = instr.arg[0];
  warp.machine->current = &warp;
  uint64_t at[WIDTH];
  Value room[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  Questions found;
  gather(mask, at, values(warp, instr.source(1), room), found);
  for (int i = 0; i < found.count; ++i)
    found.all[i].at = mbarrier::find(warp, found.all[i].address);
  for (int i = 0; i < found.count; ++i)
    found.all[i].done = passed<by_parity>(found.all[i].at.state, found.all[i].value);
  const bool any = found.any();
  if (how & SUSPENDS && !any && !answers_early(warp, split)) {
    split.wait_for(any_passed<by_parity>(found), true);
    return Step::WAIT;
  }
  split.token = 0;
  for (int i = 0; i < found.count; ++i)
    if (found.all[i].done) acquire_phase(warp, found.all[i].at, how, who_waits(warp, mask));
  if (any)
    split.spins = 0;
  else
    asked(warp, mask, spelled(found, mask, at), {}, none_passed<by_parity>(found));
  put_predicate(warp, instr.target(), found.done(), mask);
  return Step::DONE;
}

bool prepare_wait(Instr& instr) {
  const Form& form = *instr.form;
  if (form.sources.size() < 2 || form.targets.size() != 1) return false;
  const bool by_parity = form.has("parity");
  const bool suspends = form.modifiers[0] == "try_wait";
  instr.arg[0] = (by_parity ? BY_PARITY : 0) | (suspends ? SUSPENDS : 0) |
                 (form.has("relaxed") ? WAIT_RELAXED : 0) |
                 (form.has("cluster") ? WAIT_OF_CLUSTER : 0);
  instr.control = by_parity ? run_wait<true> : run_wait<false>;
  return true;
}
ROW("mbarrier.test_wait mbarrier.try_wait", prepare_wait);

}  // namespace
}  // namespace kernelpack
