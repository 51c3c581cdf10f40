// The mbarriers of a cluster: found, shown, completed (semantics/mbarrier.py is the definition).
#include "mbarriers.hpp"

namespace kernelpack {
namespace mbarrier {
namespace {

// A number of a warp within its cluster; a CTA has 32 warps at most.
int number_of(const Warp& warp) { return warp.cta->rank * WIDTH + warp.index; }

// A warp's first use, or that of a copy which it started: the initialisation must have come before.
void look(Warp& warp, const Place& at, int agent) {
  const int number = number_of(warp);
  uint64_t& seen = at.state->used_by[number / 64];
  const uint64_t bit = uint64_t{1} << number % 64;
  Bus& bus = at.cta->machine->bus;
  if ((seen & bit) || !bus.watched()) return;
  seen |= bit;
  const uint32_t cells[2] = {at.offset / 4, at.offset / 4 + 1};
  Access use{&at.cta->shared.unit, cells, 2, agent, false};
  use.atomic = true;
  use.mbarrier = Use::USE;
  bus.access(use);
}

Place place_in(Cta& cta, uint32_t offset) {
  const auto found = cta.mbarriers.find(offset);
  if (found == cta.mbarriers.end() || !found->second.is_there)
    doubt("no mbarrier was initialised there");
  return {&cta, offset, &found->second};
}

}  // namespace

Place find(Warp& warp, uint64_t address) {
  Cta& cta = peer(warp, rank_of(address));
  const Place at = place_in(cta, offset_of(address));
  look(warp, at, warp.agent);
  return at;
}

void complete(Cta& cta, uint32_t offset, const Doer& doer, int64_t size) {
  const Place at = place_in(cta, offset);
  look(*doer.warp, at, doer.agent);
  update(at, doer.agent, [size](MBarrier& state) { complete_tx(state, size); });
}

}  // namespace mbarrier

}  // namespace kernelpack
