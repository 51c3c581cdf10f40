// Exchange between the lanes of a warp: shfl, vote, elect, bar.warp.sync
// (semantics/warp.py), and how lanes of a member mask meet (semantics/members.py).
#include <algorithm>
#include <cstring>

#include "machine.hpp"

namespace kernelpack {

namespace {

// What the lanes of a mask make of their values: up to two results a lane.
using Exchange = void (*)(Warp&, const Instr&, Mask, const uint64_t (*)[WIDTH],
                          uint64_t (*)[WIDTH]);

struct Collective {
  std::string qualified;
  Exchange exchange;
};

const Collective& of(const Instr& instr) {
  return *static_cast<const Collective*>(instr.plan.get());
}

Mask missing(const Warp& warp, const Meeting& meeting) {
  return meeting.word & warp.alive & ~(meeting.here | meeting.absent | meeting.passed);
}

void check_own(Mask word, Mask lanes) {
  if (lanes & ~word) doubt("a lane that is not in its own member mask");
}

// Results to the destinations: a value, or a value and a predicate.
void put_results(Warp& warp, const Instr& instr, const uint64_t (*results)[WIDTH], Mask mask) {
  for (size_t i = 0; i < instr.form->targets.size(); ++i) {
    const Operand& to = instr.form->targets[i];
    if (to.items[0].of == Slot::SINK) continue;
    if (to.type == "pred") {
      Mask yes = 0;
      for (int lane = 0; lane < WIDTH; ++lane)
        yes |= static_cast<Mask>(results[i][lane] & 1) << lane;
      put_predicate(warp, to.items[0], yes, mask);
    } else {
      uint32_t words[WIDTH];
      for (int lane = 0; lane < WIDTH; ++lane)
        words[lane] = static_cast<uint32_t>(results[i][lane]);
      put<uint32_t>(warp, to.items[0], words, mask);
    }
  }
}

// The values that lanes bring; all but the last operand, the member mask.
void brought(Warp& warp, const Instr& instr, uint64_t (*out)[WIDTH]) {
  for (size_t i = 0; i + 1 < instr.form->sources.size(); ++i) {
    const Operand& from = instr.form->sources[i];
    if (from.type == "pred") {
      const Mask yes = predicate(warp, from.items[0]);
      for (int lane = 0; lane < WIDTH; ++lane) out[i][lane] = yes >> lane & 1;
    } else {
      uint32_t room[WIDTH];
      const uint32_t* words = values<uint32_t>(warp, from.items[0], room);
      for (int lane = 0; lane < WIDTH; ++lane) out[i][lane] = words[lane];
    }
  }
}

struct Group {
  Mask word, lanes;
};

// The lanes that run the instruction, by their member mask, the least first.
int groups_of(const uint32_t* words, Mask mask, Group* out) {
  int count = 0;
  for (Mask rest = mask; rest;) {
    uint32_t least = EVERY;
    for (Mask m = rest; m; m &= m - 1) least = std::min(least, words[__builtin_ctz(m)]);
    Mask lanes = 0;
    for (Mask m = rest; m; m &= m - 1)
      if (words[__builtin_ctz(m)] == least) lanes |= m & -m;
    out[count++] = {least, lanes};
    rest &= ~lanes;
  }
  return count;
}

Meeting& meeting_of(Warp& warp, const Instr& instr, Mask word, int32_t pc,
                    const uint64_t (*values)[WIDTH], std::shared_ptr<Meeting>& found) {
  for (const auto& each : warp.meetings)
    if (each->word == word && *each->qualified == of(instr).qualified) return *(found = each);
  found = std::make_shared<Meeting>();
  found->qualified = &of(instr).qualified;
  found->word = word;
  found->pc = pc;
  std::memcpy(found->values, values, sizeof found->values);
  warp.meetings.push_back(found);
  return *found;
}

std::function<bool()> until_whole(Warp& warp, std::shared_ptr<Meeting> meeting) {
  return [&warp, meeting] { return meeting->over || !missing(warp, *meeting); };
}

// Some lanes are still to come: each group goes to its meeting, and waits there by itself.
Step gather(Warp& warp, Split& split, const Instr& instr, Mask mask, const Group* groups, int count,
            const uint64_t (*values)[WIDTH]) {
  const Mask skipping = split.lanes() & ~mask, all = split.lanes();
  for (int number = 0; number < count; ++number) {
    const Mask lanes = groups[number].lanes;
    std::shared_ptr<Meeting> found;
    Meeting& meeting = meeting_of(warp, instr, groups[number].word, split.pc, values, found);
    meeting.here |= lanes;
    for (Mask m = lanes; m; m &= m - 1)
      for (auto& value : meeting.values) {
        const int lane = __builtin_ctz(m);
        value[lane] = values[&value - meeting.values][lane];
      }
    // Python asks for the split's lanes as they are by then: those of the first group, once it has
    // them.
    meeting.absent |= (number ? split.lanes() : all) & ~lanes;
    if (number == 0) {
      split.mask = lanes;
      split.every = lanes == EVERY;
      split.remembered = found;
      split.wait_for(until_whole(warp, found), false, true);
    } else {
      auto other = std::make_unique<Split>();
      other->pc = split.pc;
      other->mask = lanes;
      other->every = false;
      other->remembered = found;
      other->wait_for(until_whole(warp, found), false, true);
      warp.splits.push_back(std::move(other));
    }
  }
  if (skipping) {
    auto other = std::make_unique<Split>();
    other->pc = split.pc + 1;
    other->mask = skipping;
    other->every = false;
    other->spins = split.spins;
    warp.splits.push_back(std::move(other));
  }
  return Step::WAIT;
}

// Those who came have met: the first of them to go on does the exchange for all.
Step over(Warp& warp, Split& split, const Instr& instr, Mask mask) {
  const auto meeting = std::static_pointer_cast<Meeting>(split.remembered);
  if (!meeting->over) {
    check_own(meeting->word, meeting->here);
    if (meeting->word & ~meeting->here & (meeting->absent | meeting->passed))
      doubt("lanes of a member mask that go on without the instruction");
    of(instr).exchange(warp, instr, meeting->here, meeting->values, meeting->results);
    meeting->over = true;
    warp.meetings.erase(std::find(warp.meetings.begin(), warp.meetings.end(), meeting));
  }
  split.remembered = nullptr;
  put_results(warp, instr, meeting->results, mask);
  return Step::DONE;
}

Step together(Warp& warp, Split& split, const Instr& instr, Mask mask) {
  if (split.remembered) return over(warp, split, instr, mask);
  uint32_t room[WIDTH];
  const uint32_t* words = values<uint32_t>(warp, instr.form->sources.back().items[0], room);
  const Mask word = words[first_lane(mask)];
  bool is_same = true;
  for (Mask m = mask; m; m &= m - 1) is_same = is_same && words[__builtin_ctz(m)] == word;
  uint64_t brought_[Meeting::MOST_VALUES][WIDTH], results[2][WIDTH];
  brought(warp, instr, brought_);
  if (is_same && (word & warp.alive) == mask) {
    of(instr).exchange(warp, instr, mask, brought_, results);
    put_results(warp, instr, results, mask);
    return Step::DONE;
  }
  Group groups[WIDTH];
  const int count = groups_of(words, mask, groups);
  const auto is_whole = [&warp](const Group& g) { return !(g.word & warp.alive & ~g.lanes); };
  if (!std::all_of(groups, groups + count, is_whole))
    return gather(warp, split, instr, mask, groups, count, brought_);
  for (int i = 0; i < count; ++i) {
    check_own(groups[i].word, groups[i].lanes);
    of(instr).exchange(warp, instr, groups[i].lanes, brought_, results);
    put_results(warp, instr, results, groups[i].lanes);
  }
  return Step::DONE;
}

bool prepare(Instr& instr, Exchange exchange) {
  auto plan = std::make_shared<Collective>();
  plan->qualified = instr.form->name;
  for (const std::string& each : instr.form->modifiers) plan->qualified += "." + each;
  plan->exchange = exchange;
  instr.plan = plan;
  instr.control = together;
  return instr.form->sources.size() <= Meeting::MOST_VALUES + 1;
}

// -- the instructions -------------------------------------------------------------------------

void meet(Warp& warp, const Instr&, Mask here, const uint64_t (*)[WIDTH], uint64_t (*)[WIDTH]) {
  const bool is_whole = here == warp.alive;
  warp.machine->bus.met(warp.agent, is_whole ? EVERY : here, is_whole);
}

void choose(Warp&, const Instr&, Mask mask, const uint64_t (*)[WIDTH], uint64_t (*results)[WIDTH]) {
  const int leader = first_lane(mask);
  for (int lane = 0; lane < WIDTH; ++lane) {
    results[0][lane] = leader;
    results[1][lane] = lane == leader;
  }
}

enum Mode : int64_t { UP, DOWN, BFLY, IDX };

template <Mode MODE>
void shuffle(Warp&, const Instr&, Mask mask, const uint64_t (*values)[WIDTH],
             uint64_t (*results)[WIDTH]) {
  for (int lane = 0; lane < WIDTH; ++lane) {
    const int step = values[1][lane] & 31, segment = values[2][lane] >> 8 & 31,
              clamp = values[2][lane] & 31;
    const int highest = (lane & segment) | (clamp & ~segment);
    int source = lane - step;
    if (MODE == IDX) source = (lane & segment) | (step & ~segment);
    if (MODE == DOWN) source = lane + step;
    if (MODE == BFLY) source = lane ^ step;
    const bool is_inside = MODE == UP ? source >= highest : source <= highest;
    const int from = (is_inside ? source : lane) & 31;
    if ((mask >> lane & 1) && !(mask >> from & 1))
      doubt("a lane reads one that does not take part");
    results[0][lane] = values[0][from];
    results[1][lane] = is_inside;
  }
}

Mask votes(Mask mask, const uint64_t* value) {
  Mask yes = 0;
  for (int lane = 0; lane < WIDTH; ++lane) yes |= static_cast<Mask>(value[lane] & 1) << lane;
  return yes & mask;
}

enum Vote : int64_t { ALL, ANY, UNI, BALLOT };

template <Vote VOTE>
void vote(Warp&, const Instr&, Mask mask, const uint64_t (*values)[WIDTH],
          uint64_t (*results)[WIDTH]) {
  const Mask yes = votes(mask, values[0]);
  uint64_t found = yes;
  if (VOTE == ALL) found = yes == mask;
  if (VOTE == ANY) found = yes != 0;
  if (VOTE == UNI) found = yes == mask || !yes;
  std::fill(results[0], results[0] + WIDTH, found);
}

bool prepare_barrier(Instr& instr) { return prepare(instr, meet); }
bool prepare_elect(Instr& instr) { return prepare(instr, choose); }

bool prepare_shuffle(Instr& instr) {
  const std::string mode = instr.form->one_of({"up", "down", "bfly", "idx"});
  return prepare(instr, mode == "up"     ? shuffle<UP>
                        : mode == "down" ? shuffle<DOWN>
                        : mode == "bfly" ? shuffle<BFLY>
                                         : shuffle<IDX>);
}

bool prepare_vote(Instr& instr) {
  for (const std::string& mode : instr.form->modifiers) {
    if (mode == "all") return prepare(instr, vote<ALL>);
    if (mode == "any") return prepare(instr, vote<ANY>);
    if (mode == "uni") return prepare(instr, vote<UNI>);
    if (mode == "ballot") return prepare(instr, vote<BALLOT>);
  }
  return false;
}

ROW("bar.warp.sync", prepare_barrier);
ROW("elect", prepare_elect);
ROW("shfl.sync", prepare_shuffle);
ROW("vote.sync vote.all.sync vote.any.sync vote.uni.sync vote.ballot.sync", prepare_vote);

}  // namespace

}  // namespace kernelpack
