// What asynchronous copies have in common (semantics/copies.py): runs of bytes that a unit moves
// and the checks hear of, and the groups by which a warp waits for copies.
#pragma once

#include <numeric>

#include "mbarriers.hpp"
#include "reduction.hpp"

namespace kernelpack {
namespace copies {

using Cells = std::vector<uint32_t>;

// Room that copies use again and again.
struct Room {
  Cells cells;
  std::vector<uint8_t> bytes;
};

inline Room& room(const Doer& doer) { return doer.warp->machine->units.of<Room>(); }

// The copies that complete on one mbarrier.
inline Doer completing(Cta& cta, uint32_t offset, Warp& warp) {
  return {cta.agent(Cta::Agent::COPIES, offset), &warp};
}

// The bulk copies that a warp waits for by group.
inline Doer bulk(Warp& warp) { return {warp.cta->agent(Cta::Agent::BULK, warp.index), &warp}; }

// The checks hear of cells that were looked up in their memory already; of none there is no word.
inline void tell(const Memory& memory, const Cells& cells, const Doer& doer, bool write,
                 int64_t layout = 0) {
  Bus& bus = doer.warp->machine->bus;
  if (cells.empty() || !bus.watched()) return;
  bus.access(
      Access{&memory.unit, cells.data(), cells.size(), doer.agent, write, doer.proxy, layout});
}

// The cells of a run of whole words.
inline void tell_run(const Memory& memory, uint64_t offset, uint64_t size, const Doer& doer,
                     bool write) {
  Cells& cells = room(doer).cells;
  cells.resize(size / 4);
  std::iota(cells.begin(), cells.end(), static_cast<uint32_t>(offset / 4));
  tell(memory, cells, doer, write);
}

// The bytes of a run of whole words.
inline const uint8_t* read_run(const Memory& memory, uint64_t offset, uint64_t size,
                               const Doer& doer) {
  memory.check_read(offset, size);
  tell_run(memory, offset, size, doer, false);
  return memory.bytes + offset;
}

inline void write_run(Memory& memory, uint64_t offset, const uint8_t* from, uint64_t size,
                      const Doer& doer) {
  memory.check_write(offset, size);
  tell_run(memory, offset, size, doer, true);
  std::memmove(memory.bytes + offset, from, size);
  ++doer.warp->machine->changes;
}

// Reduce bytes into a run of whole words, whose old values the checks do not hear of.
inline void reduce_run(Memory& memory, uint64_t offset, const uint8_t* from, uint64_t size,
                       Reduce reduce, const Doer& doer) {
  memory.check_read(offset, size);
  memory.check_write(offset, size);
  tell_run(memory, offset, size, doer, true);
  reduce(memory.bytes + offset, from, size);
  ++doer.warp->machine->changes;
}

// The operations that a warp committed in groups, oldest first. A group is its threads' own: those
// lanes that committed it wait for it, no others.
class Groups {
public:
  void add(OperationPtr operation) { open_.push_back(std::move(operation)); }
  void commit(Mask lanes);
  // Wait until at most `keep` of the newest groups of some lanes are unfinished.
  void finish(Warp& warp, int64_t keep, Mask lanes);
  // Those that have not taken effect, in the order of issue.
  std::vector<OperationPtr> in_flight();

private:
  struct Group {
    std::vector<OperationPtr> operations;
    Mask lanes;
  };
  std::vector<OperationPtr> open_;
  size_t done_ = 0;  // as many at the front of `open_` have taken effect
  std::vector<Group> committed_;
};

struct BulkGroups : Groups {};
struct AsyncGroups : Groups {};

// Issue an operation into the warp's open group.
template <typename Kind, typename Effect>
void in_group(const Doer& doer, Effect effect) {
  Warp& warp = *doer.warp;
  Engine& engine = warp.machine->engine;
  const int64_t number = engine.count + 1;
  const int agent = doer.agent;
  Bus& bus = warp.machine->bus;
  auto whole = [effect = std::move(effect), number, agent, &bus] {
    effect();
    bus.release(Release{agent, Channel{Channel::OPERATION, number}});
  };
  warp.units.of<Kind>().add(engine.alone(warp, agent, std::move(whole)));
}

template <typename Effect>
void alone(const Doer& doer, Effect effect) {
  doer.warp->machine->engine.alone(*doer.warp, doer.agent, std::move(effect));
}

}  // namespace copies
}  // namespace kernelpack
