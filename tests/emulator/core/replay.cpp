// Events of a run of the Python engine, as words, given to the checks of the core: for tests.
#include <cstdio>
#include <map>
#include <stdexcept>

#include "../../../kernelpack/emulator/core/checks/checks.hpp"
#include "../../../kernelpack/emulator/core/checks/clocks.cpp"
#include "../../../kernelpack/emulator/core/checks/races.cpp"
#include "../../../kernelpack/emulator/core/checks/shadow.cpp"

namespace {

using namespace kernelpack;

// Reads the words that `recorder.py` writes; there is a function for each kind of event.
class Replay {
public:
  Replay(const int64_t* words, size_t count, int64_t apart)
      : at_(words), end_(words + count), apart_(apart) {}

  bool is_over() const { return at_ == end_; }

  void one() {
    switch (next()) {
      case 1: return started();
      case 2: return release();
      case 3: return acquire();
      case 4: return fenced();
      case 5: return arrived();
      case 6: return proxy_fence();
      case 7: return issued();
      case 8: return began();
      case 9: return ended();
      case 10: return access();
      case 11: return swizzled();
      case 12: return reached();
      case 13: return exited();
      default: throw std::runtime_error("no such event");
    }
  }

private:
  int64_t next() { return *at_++; }
  int number() { return static_cast<int>(next()); }
  bool truth() { return next() != 0; }
  Scope scope() { return static_cast<Scope>(next()); }
  Channel channel() {
    const auto of = static_cast<Channel::Of>(next());
    return {of, next()};
  }
  const Unit* unit() {
    const int id = number();
    const auto kind = static_cast<Kind>(next());
    const auto cells = static_cast<uint32_t>(next());
    return &units_.try_emplace(id, Unit{id, kind, cells, 0}).first->second;
  }
  template <typename T>
  void list(std::vector<T>& items) {
    items.resize(static_cast<size_t>(next()));
    for (T& item : items) item = static_cast<T>(next());
  }

  void started() {
    Started event;
    event.agent = number();
    event.is_warp = truth();
    event.cta = number();
    event.cluster = next();
    event.is_alone = truth();
    checks_.on_started(event);
  }
  void release() {
    Release event{};
    event.agent = number();
    event.channel = channel();
    event.relaxed = truth();
    event.scope = scope();
    event.tolerated = truth();
    checks_.on_release(event);
  }
  void acquire() {
    Acquire event{};
    event.agent = number();
    event.channel = channel();
    event.relaxed = truth();
    event.scope = scope();
    checks_.on_acquire(event);
  }
  void fenced() {
    Fenced event{};
    event.agent = number();
    event.scope = scope();
    event.acquires = truth();
    event.releases = truth();
    checks_.on_fenced(event);
  }
  void arrived() {
    Arrived event{};
    event.agent = number();
    event.barrier = number();
    event.phase = next();
    event.waits = truth();
    checks_.on_arrived(event);
  }
  void proxy_fence() {
    ProxyFence event{};
    event.agent = number();
    event.shared = truth();
    event.global = truth();
    checks_.on_proxy_fence(event);
  }
  void issued() {
    const int64_t operation = next();
    const int parent = number(), agent = number();
    const bool is_staged = truth();
    Stage stage;
    if (is_staged) {
      stage.pipe = next();
      stage.kind = next();
      list(stage.behind);
    }
    checks_.on_issued(operation, parent, agent, is_staged ? &stage : nullptr);
  }
  void began() {
    const int64_t operation = next();
    const int agent = number();
    checks_.on_began(operation, agent, truth());
  }
  void ended() {
    const int64_t operation = next();
    checks_.on_ended(operation, number());
  }
  void access() {
    Access event{};
    event.unit = unit();
    event.agent = number();
    event.write = truth();
    event.proxy = static_cast<Proxy>(next());
    event.atomic = truth();
    event.mbarrier = static_cast<Use>(next());
    const int64_t unchanged = next();
    if (unchanged >= 0) event.unchanged = [unchanged] { return unchanged != 0; };
    list(cells_);
    list(masks_);
    event.cells = cells_.data();
    event.count = cells_.size();
    event.masks = masks_.empty() ? nullptr : masks_.data();
    if (masks_.empty()) event.layout = layout();
    checks_.on_access(event);
  }
  // The number of these cells.
  int64_t layout() {
    const auto number = static_cast<int64_t>(layouts_.size()) + 1;
    return apart_ * layouts_.try_emplace(cells_, number).first->second;
  }
  void swizzled() {
    Swizzled event{};
    event.unit = unit();
    event.write = truth();
    event.pattern = number();
    list(cells_);
    event.cells = cells_.data();
    event.count = cells_.size();
    checks_.on_swizzled(event);
  }
  void reached() {
    const int agent = number();
    checks_.on_reached({agent, number()});
  }
  void exited() {
    std::vector<int> agents, ids;
    list(agents);
    list(ids);
    std::vector<const Unit*> units;
    for (const int id : ids) units.push_back(&units_[id]);
    for (size_t i = 0; i < ids.size(); ++i) const_cast<Unit*>(units[i])->id = ids[i];
    checks_.on_exited(0, agents, units);
  }

  const int64_t *at_, *end_, apart_;
  std::map<int, Unit> units_;
  std::vector<uint32_t> cells_;
  std::vector<uint8_t> masks_;
  std::map<std::vector<uint32_t>, int64_t> layouts_;
  Checks checks_;
};

}  // namespace

// The number of the event at which the checks doubt, and into `why` the reason; -1 where they do
// not. Cells that come again have numbers that lie so far apart; none where that is 0.
extern "C" long replay(const int64_t* words, size_t count, int64_t apart, char* why, size_t room) {
  Replay replay(words, count, apart);
  long event = 0;
  try {
    for (; !replay.is_over(); ++event) replay.one();
  } catch (const kernelpack::Doubt& doubt) {
    std::snprintf(why, room, "%s", doubt.why.c_str());
    return event;
  }
  return -1;
}
