// Who polls: asks again for what has not changed since it asked last (machine/polls.py).
#include "machine.hpp"

namespace kernelpack {

namespace {

// The split that lanes belong to.
Split& split_of(Warp& warp, Mask mask) {
  if (warp.splits.size() == 1) return *warp.splits.front();
  const int first = mask ? first_lane(mask) : 0;
  for (const auto& split : warp.splits)
    if (split->lanes() >> first & 1) return *split;
  doubt("lanes of no split");
}

// Whether each answer that a warp got since a step is the same still; none if one is open.
void questions(Warp& warp, int64_t since) {
  warp.dozes_on.clear();
  for (const auto& [at, asked] : warp.asked)
    if (asked.step >= since && !asked.same) return;
  for (const auto& [at, asked] : warp.asked)
    if (asked.step >= since) warp.dozes_on.push_back(asked.same);
}

}  // namespace

void asked(Warp& warp, Mask mask, std::vector<uint8_t> what, std::vector<uint8_t> answer,
           std::function<bool()> same) {
  const int64_t changes = warp.machine->changes;
  const int64_t acts = warp.acts + warp.clock_reads + (changes != warp.turn_began);
  const auto found = warp.asked.find(warp.at);
  const bool is_again =
      found != warp.asked.end() && found->second.what == what && found->second.answer == answer;
  int64_t seen_changes = 0, seen_step = 0, seen_acts = 0;
  if (is_again) {
    seen_changes = found->second.changes;
    seen_step = found->second.step;
    seen_acts = found->second.acts;
  }
  warp.asked[warp.at] =
      Asked{std::move(what), std::move(answer), changes, warp.steps, acts, std::move(same)};
  Split& split = split_of(warp, mask);
  if (!is_again) {
    split.spins = 0;
    return;
  }
  if (seen_changes == changes) {
    ++split.spins;
    split.polls = true;
    split.poll = Poll{warp.at, changes, warp.steps, std::max<int64_t>(warp.steps - seen_step, 1)};
    warp.repeats = true;
  }
  if (warp.splits.size() == 1 && seen_acts == acts) questions(warp, seen_step);
}

// Whether a warp polls, and would get the answers that it got in its last turn.
static bool dozes(const Warp& warp) {
  if (warp.dozes_on.empty()) return false;
  for (const auto& same : warp.dozes_on)
    if (!same()) return false;
  return true;
}

// Whether lanes do nothing but ask, as far as their last two turns around tell.
static bool only_polls(const Warp& warp, const Split& split) {
  if (!split.polls || split.poll.changes != warp.machine->changes) return false;
  return warp.steps - split.poll.step <= 2 * split.poll.period;
}

}  // namespace kernelpack
