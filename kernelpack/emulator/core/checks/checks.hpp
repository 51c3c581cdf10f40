// The checks of a run (emulator/checks/): they listen, and doubt where Python's would report.
//
// These are the checks of the levels up to `warn`. What the machine itself notices (`Misuse`) and
// what a CTA leaves behind are doubts of the machine.
#pragma once

#include <vector>

#include "../events.hpp"
#include "arrivals.hpp"
#include "clocks.hpp"
#include "races.hpp"
#include "starts.hpp"

namespace kernelpack {

// Hears every event, in order. Each method takes what the bus takes.
class Checks {
public:
  void on_started(const Started& event) {
    starts_.on_started(event);
    clocks_.on_started(event);
  }
  void on_release(const Release& event) {
    starts_.on_release(event);
    clocks_.on_release(event);
  }
  void on_acquire(const Acquire& event) {
    starts_.on_acquire(event);
    clocks_.on_acquire(event);
  }
  void on_fenced(const Fenced& event) { clocks_.on_fenced(event); }
  void on_proxy_fence(const ProxyFence& event) { clocks_.on_proxy_fence(event); }
  void on_arrived(const Arrived& event) { arrivals_.on_arrived(event); }
  void on_met(int agent, Mask lanes, bool whole) {}   // of the strict level
  void on_tensor_fence(int agent, bool is_before) {}  // the same
  void on_issued(int64_t operation, int parent, int agent, const Stage* stage) {
    starts_.on_issued(operation, parent);
    clocks_.on_issued(operation, parent, stage);
    races_.on_issued(operation);
  }
  void on_began(int64_t operation, int agent, bool ordered) {
    starts_.on_began(operation, agent, ordered);
    clocks_.on_began(operation, agent, ordered);
    races_.on_began(operation);
  }
  void on_ended(int64_t operation, int agent) {
    starts_.on_ended(operation);
    clocks_.on_ended(operation);
    races_.on_ended(operation);
  }
  void on_access(const Access& event) {
    if (event.count) races_.on_access(event);
  }
  void on_swizzled(const Swizzled& event) {
    if (event.count) races_.on_swizzled(event);
  }
  void on_reached(const Reached& event) { starts_.on_reached(event); }
  void on_exited(int cta, const std::vector<int>& agents, const std::vector<const Unit*>& units) {
    starts_.on_exited(agents);
    clocks_.on_exited(agents);
    races_.on_exited(units);
    if (!agents.empty()) arrivals_.on_exited(clocks_.agent(agents[0]).cta);
  }

private:
  checks::Clocks clocks_;
  checks::Races races_{clocks_};
  checks::Arrivals arrivals_{clocks_};
  checks::Starts starts_;
};

}  // namespace kernelpack
