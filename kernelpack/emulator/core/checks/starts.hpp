// CTAs of a cluster that reach into each other: the other one must have started (checks/starts.py).
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "channels.hpp"
#include "flights.hpp"

namespace kernelpack::checks {

// Numbers of CTAs, in order; never changed, but replaced. Null is none.
using Ctas = std::shared_ptr<const std::vector<int>>;

class Starts {
public:
  // A warp runs, so its CTA has started; of a unit nothing follows.
  void on_started(const Started& event) {
    Ctas known;
    if (event.is_warp && !event.is_alone) known = std::make_shared<std::vector<int>>(1, event.cta);
    is_used_ |= known != nullptr;
    known_.push_back(known);
  }

  // What an agent knows goes into the channel. That it arrives, relaxed or not, says it.
  void on_release(const Release& event) {
    if (!is_used_ || !of(event.agent)) return;
    Ctas& told = channels_.put(event.channel);
    told = joined(told, of(event.agent));
  }
  void on_acquire(const Acquire& event) {
    if (!is_used_) return;
    if (const Ctas* told = channels_.find(event.channel))
      of(event.agent) = joined(of(event.agent), *told);
  }

  // An operation starts with what its issuer knows; a pipe keeps what it knew.
  void on_issued(int64_t operation, int parent) {
    if (is_used_ && of(parent)) issued_.add(operation, of(parent));
  }
  void on_began(int64_t operation, int agent, bool ordered) {
    if (!is_used_) return;
    const Ctas* issued = issued_.find(operation);
    const Ctas told = issued ? *issued : nullptr;
    Ctas& known = of(agent);
    known = ordered ? joined(told, known) : told;
  }
  void on_ended(int64_t operation) {
    if (is_used_) issued_.end(operation);
  }
  void on_exited(const std::vector<int>& agents) {
    for (const int agent : agents) of(agent) = nullptr;
  }

  void on_reached(const Reached& event) {
    const Ctas& known = of(event.agent);
    if (!known || !std::binary_search(known->begin(), known->end(), event.cta))
      doubt("a CTA is reached that may not have started");
  }

private:
  Ctas& of(int agent) { return known_[static_cast<size_t>(agent)]; }

  static Ctas joined(const Ctas& a, const Ctas& b) {
    if (!a || !b || a == b) return a ? a : b;
    if (std::includes(a->begin(), a->end(), b->begin(), b->end())) return a;
    if (std::includes(b->begin(), b->end(), a->begin(), a->end())) return b;
    auto both = std::make_shared<std::vector<int>>();
    std::set_union(a->begin(), a->end(), b->begin(), b->end(), std::back_inserter(*both));
    return both;
  }

  std::vector<Ctas> known_;  // by agent
  Kept<Ctas> channels_;
  Flights<Ctas> issued_;
  bool is_used_ = false;  // some warp is of a cluster of several CTAs
};

}  // namespace kernelpack::checks
