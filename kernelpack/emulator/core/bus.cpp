// Events to the checks and to the log. A record of the log: its kind, the number of words, the
// words.
#include "checks/checks.hpp"
#include "events.hpp"

namespace kernelpack {

namespace {

enum Event : int64_t {
  STARTED = 1,
  RELEASE,
  ACQUIRE,
  FENCED,
  ARRIVED,
  MET,
  TENSOR_FENCE,
  PROXY_FENCE,
  ISSUED,
  BEGAN,
  ENDED,
  ACCESS,
  SWIZZLED,
  REACHED,
  EXITED,
  RAN,
};

// What stands for the cells of an access: their number, and a sum in which each counts by its
// place.
int64_t sum(const uint32_t* cells, size_t count, const uint8_t* masks) {
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i)
    total = total * 31 + cells[i] * 16ull + (masks ? masks[i] : 15);
  return static_cast<int64_t>(total >> 1);
}

}  // namespace

void Bus::started(const Started& e) {
  note({STARTED, 4, e.agent, e.is_warp, e.cta, e.is_alone});
  if (checks) checks->on_started(e);
}

void Bus::release(const Release& e) {
  const Channel& c = e.channel;
  note({RELEASE, 9, e.agent, c.of, c.a, c.b, c.c, e.relaxed, static_cast<int64_t>(e.scope),
        e.tolerated, e.by});
  if (checks) checks->on_release(e);
}

void Bus::acquire(const Acquire& e) {
  const Channel& c = e.channel;
  note({ACQUIRE, 9, e.agent, c.of, c.a, c.b, c.c, e.lanes, e.relaxed, static_cast<int64_t>(e.scope),
        e.by});
  if (checks) checks->on_acquire(e);
}

void Bus::fenced(const Fenced& e) {
  note({FENCED, 4, e.agent, static_cast<int64_t>(e.scope), e.acquires, e.releases});
  if (checks) checks->on_fenced(e);
}

void Bus::arrived(const Arrived& e) {
  note({ARRIVED, 4, e.agent, e.barrier, e.phase, e.waits});
  if (checks) checks->on_arrived(e);
}

void Bus::met(int agent, Mask lanes, bool whole) {
  note({MET, 3, agent, lanes, whole});
  if (checks) checks->on_met(agent, lanes, whole);
}

void Bus::tensor_fence(int agent, bool is_before) {
  note({TENSOR_FENCE, 2, agent, is_before});
  if (checks) checks->on_tensor_fence(agent, is_before);
}

void Bus::proxy_fence(const ProxyFence& e) {
  note({PROXY_FENCE, 4, e.agent, e.shared, e.global, e.lanes});
  if (checks) checks->on_proxy_fence(e);
}

void Bus::issued(int64_t operation, int parent, int agent, const Stage* stage) {
  note({ISSUED, 4, operation, parent, agent, stage ? stage->pipe : -1});
  if (checks) checks->on_issued(operation, parent, agent, stage);
}

void Bus::began(int64_t operation, int agent, bool ordered) {
  note({BEGAN, 3, operation, agent, ordered});
  if (checks) checks->on_began(operation, agent, ordered);
}

void Bus::ended(int64_t operation, int agent) {
  note({ENDED, 2, operation, agent});
  if (checks) checks->on_ended(operation, agent);
}

void Bus::access(const Access& e) {
  if (log)
    note({ACCESS, 9, static_cast<int64_t>(e.unit->kind), e.unit->cta, e.agent, e.write,
          static_cast<int64_t>(e.proxy), e.atomic, static_cast<int64_t>(e.mbarrier),
          static_cast<int64_t>(e.count), sum(e.cells, e.count, e.masks)});
  if (checks) checks->on_access(e);
}

void Bus::swizzled(const Swizzled& e) {
  if (log)
    note({SWIZZLED, 5, static_cast<int64_t>(e.unit->kind), e.unit->cta, e.write,
          static_cast<int64_t>(e.count), sum(e.cells, e.count, nullptr)});
  if (checks) checks->on_swizzled(e);
}

void Bus::reached(const Reached& e) {
  note({REACHED, 2, e.agent, e.cta});
  if (checks) checks->on_reached(e);
}

void Bus::exited(int cta, const std::vector<int>& agents, const std::vector<const Unit*>& units) {
  note({EXITED, 2, cta, static_cast<int64_t>(agents.size())});
  if (checks) checks->on_exited(cta, agents, units);
}

void Bus::ran(int agent, int first, int count) { note({RAN, 3, agent, first, count}); }

}  // namespace kernelpack
