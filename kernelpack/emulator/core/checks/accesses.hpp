// Every write, or read, of a run by its number (checks/shadow.py, Accesses).
#pragma once

#include <cstdint>
#include <vector>

#include "../doubt.hpp"

namespace kernelpack::checks {

constexpr uint32_t NOBODY = 0;  // the number of no access
// How a write was made; a partial one did not write all bytes of all its cells, and one made an
// mbarrier of them.
constexpr uint8_t IS_GENERIC = 1, IS_ATOMIC = 2, IS_PARTIAL = 4, IS_MBARRIER = 8;

// The pattern of the box that a write was of (checks/swizzles.py).
constexpr uint8_t NO_BOX = 0;

struct Done {
  int32_t agent, step;
  uint8_t how;
  uint8_t box;
};

class Accesses {
public:
  uint32_t latest() const { return static_cast<uint32_t>(done_.size() - 1); }
  const Done& operator[](uint32_t number) const { return done_[number]; }
  Done& operator[](uint32_t number) { return done_[number]; }

  uint32_t add(int32_t agent, int32_t step, uint8_t how) {
    if (done_.size() >= UINT32_MAX) doubt("more accesses than have numbers");
    done_.push_back({agent, step, how, NO_BOX});
    return latest();
  }
  // The number of one like this: the latest, if it is, else a new one.
  uint32_t same(int32_t agent, int32_t step, uint8_t how) {
    const Done& last = done_.back();
    if (last.agent == agent && last.step == step && last.how == how) return latest();
    return add(agent, step, how);
  }

private:
  std::vector<Done> done_ = {{-1, 0, 0, NO_BOX}};
};

}  // namespace kernelpack::checks
