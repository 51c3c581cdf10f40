// Named barriers: who arrives without waiting must not arrive again before the barrier is reset
// (checks/arrivals.py; PTX ISA 9.7.13.1).
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "clocks.hpp"

namespace kernelpack::checks {

class Arrivals {
public:
  explicit Arrivals(const Clocks& clocks) : clocks_(clocks) {}

  void on_arrived(const Arrived& event) {
    const Agent& mine = clocks_.agent(event.agent);
    Barrier& barrier = barriers_[{mine.cta, event.barrier}];
    const auto left = barrier.left.find(event.agent);
    if (left != barrier.left.end()) {
      compare(event, mine, barrier, left->second);
      barrier.left.erase(left);
    }
    if (!event.waits) barrier.left[event.agent] = event.phase;
    int64_t oldest = event.phase;
    if (!barrier.left.empty()) oldest = INT64_MAX;
    for (const auto& one : barrier.left) oldest = std::min(oldest, one.second);
    while (!barrier.came.empty() && barrier.came.begin()->first < oldest)
      barrier.came.erase(barrier.came.begin());
    note(barrier.came[event.phase], event.agent, mine.step);
  }

  void on_exited(int cta) {
    barriers_.erase(barriers_.lower_bound({cta, INT32_MIN}),
                    barriers_.upper_bound({cta, INT32_MAX}));
  }

private:
  using Came = std::vector<std::pair<int, int32_t>>;  // agent and its step
  struct Barrier {
    std::map<int64_t, Came> came;  // by phase
    std::map<int, int64_t> left;   // agent: the phase at which it arrived without waiting
  };

  static void note(Came& came, int agent, int32_t step) {
    for (auto& one : came)
      if (one.first == agent) {
        one.second = step;
        return;
      }
    came.push_back({agent, step});
  }

  void compare(const Arrived& event, const Agent& mine, Barrier& barrier, int64_t left) const {
    if (left == event.phase)
      doubt("an arrival at a barrier that is not complete since the last one");
    for (const auto& [other, step] : barrier.came[left])
      if (other != event.agent && clocks_.known(mine, other, EXECUTED) < step)
        doubt("an arrival that nothing orders behind the others of the last phase");
  }

  const Clocks& clocks_;
  std::map<std::pair<int, int>, Barrier> barriers_;  // by CTA and number
};

}  // namespace kernelpack::checks
