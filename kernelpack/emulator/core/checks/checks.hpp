// The checks of a run (emulator/checks/): they listen, and doubt where Python's would report.
#pragma once

#include <memory>
#include <vector>

#include "../events.hpp"

namespace kernelpack {

// Hears every event, in order. Each method takes what the bus takes.
class Checks {
 public:
  void on_started(const Started&) {}
  void on_release(const Release&) {}
  void on_acquire(const Acquire&) {}
  void on_fenced(const Fenced&) {}
  void on_arrived(const Arrived&) {}
  void on_met(int agent, Mask lanes, bool whole) {}
  void on_tensor_fence(int agent, bool is_before) {}
  void on_proxy_fence(const ProxyFence&) {}
  void on_issued(int64_t operation, int parent, int agent, const Stage*) {}
  void on_began(int64_t operation, int agent, bool ordered) {}
  void on_ended(int64_t operation, int agent) {}
  void on_access(const Access&) {}
  void on_swizzled(const Swizzled&) {}
  void on_reached(const Reached&) {}
  void on_exited(int cta, const std::vector<int>& agents, const std::vector<const Unit*>& units) {}
};

}  // namespace kernelpack
