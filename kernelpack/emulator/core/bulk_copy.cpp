// Bulk copies of whole ranges of bytes, and their groups (PTX ISA 9.7.9.25.4;
// semantics/bulk_copy.py is the definition). Masks of bytes, ignored ends and reductions are left
// to Python.
#include "copies.hpp"

namespace kernelpack {
namespace {

using mbarrier::offset_of;
using mbarrier::rank_of;

constexpr uint64_t MOST_BULK_BYTES = 1 << 20;

// Destination and source space, as written: 'g' or 's' each; empty where two are not named.
std::string directions(const Form& form) {
  std::string found;
  for (const std::string& modifier : form.modifiers) {
    const std::string head = modifier.substr(0, modifier.find("::"));
    if (head == "global" || head == "shared") found += head[0];
  }
  return found.size() == 2 ? found : "";
}

void check_bulk(uint64_t shared, uint64_t other, uint64_t size) {
  if (size == 0 || size > MOST_BULK_BYTES) doubt("a bulk copy of nothing, or of too much");
  if ((shared | other | size) % 16) doubt("a bulk copy that is not aligned to 16 bytes");
}

// Global to shared memory of the CTAs in a mask; each one's own mbarrier completes.
void bulk_to_shared(Warp& warp, uint64_t target, uint64_t origin, uint64_t size, uint64_t barrier,
                    uint32_t ranks) {
  const uint32_t offset = offset_of(target), at = offset_of(barrier);
  check_bulk(offset, origin, size);
  std::vector<Cta*> ctas;
  for (uint32_t rank = 0; rank < 16; ++rank)
    if (ranks >> rank & 1) ctas.push_back(&peer(warp, rank));
  if (ctas.empty()) doubt("a copy to no CTA");
  const Doer doer = copies::completing(*ctas[0], at, warp);
  copies::alone(doer, [=] {
    const Memory& memory = doer.warp->machine->memory;
    const uint8_t* data = copies::read_run(memory, origin - memory.base, size, doer);
    for (Cta* cta : ctas) {
      copies::write_run(cta->shared, offset, data, size, doer);
      mbarrier::complete(*cta, at, doer, size);
    }
  });
}

// Shared memory to that of another CTA, whose mbarrier completes.
void bulk_to_peer(Warp& warp, uint64_t target, uint64_t origin, uint64_t size, uint64_t barrier) {
  check_bulk(offset_of(target), offset_of(origin), size);
  const mbarrier::Place at = mbarrier::find(warp, barrier);
  Cta* from = &peer(warp, rank_of(origin));
  Cta* to = &peer(warp, rank_of(target));
  const Doer doer = copies::completing(*at.cta, at.offset, warp);
  copies::alone(doer, [=] {
    const uint8_t* data = copies::read_run(from->shared, offset_of(origin), size, doer);
    copies::write_run(to->shared, offset_of(target), data, size, doer);
    mbarrier::complete(*at.cta, at.offset, doer, size);
  });
}

// Shared to global memory, in the warp's bulk group.
void bulk_to_global(Warp& warp, uint64_t target, uint64_t origin, uint64_t size) {
  check_bulk(offset_of(origin), target, size);
  Cta* from = &peer(warp, rank_of(origin));
  const Doer doer = copies::bulk(warp);
  copies::in_group<copies::BulkGroups>(doer, [=] {
    Memory& memory = doer.warp->machine->memory;
    const uint8_t* data = copies::read_run(from->shared, offset_of(origin), size, doer);
    copies::write_run(memory, target - memory.base, data, size, doer);
  });
}

enum BulkArg { BULK_WAY = 0, BULK_MULTICAST = 1 };
constexpr int64_t TO_SHARED = 0, TO_PEER = 1, TO_GLOBAL = 2;

Step run_bulk_copy(Warp& warp, Split&, const Instr& instr, Mask mask) {
  const Form& form = *instr.form;
  const int64_t way = instr.arg[BULK_WAY];
  const bool multicast = instr.arg[BULK_MULTICAST];
  uint64_t to[WIDTH], from[WIDTH], barrier[WIDTH];
  uint32_t size_room[WIDTH];
  uint16_t ranks_room[WIDTH];
  addresses(warp, form.sources[0], to);
  addresses(warp, form.sources[1], from);
  const uint32_t* size = values(warp, instr.source(2), size_room);
  if (way != TO_GLOBAL) addresses(warp, form.sources[3], barrier);
  const uint16_t* ranks = multicast ? values(warp, instr.source(4), ranks_room) : nullptr;
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    if (way == TO_GLOBAL)
      bulk_to_global(warp, to[lane], from[lane], size[lane]);
    else if (way == TO_PEER)
      bulk_to_peer(warp, to[lane], from[lane], size[lane], barrier[lane]);
    else
      bulk_to_shared(warp, to[lane], from[lane], size[lane], barrier[lane],
                     multicast ? ranks[lane] : 1u << rank_of(to[lane]));
  }
  return Step::DONE;
}

bool prepare_bulk_copy(Instr& instr) {
  const Form& form = *instr.form;
  const std::string ways = directions(form);
  if (form.has("ignore_oob") || form.has("cp_mask")) return false;
  if (ways == "sg")
    instr.arg[BULK_WAY] = TO_SHARED;
  else if (ways == "ss")
    instr.arg[BULK_WAY] = TO_PEER;
  else if (ways == "gs")
    instr.arg[BULK_WAY] = TO_GLOBAL;
  else
    return false;
  const bool multicast = form.has("multicast::cluster");
  if (multicast && ways != "sg") return false;
  instr.arg[BULK_MULTICAST] = multicast;
  instr.control = run_bulk_copy;
  return form.sources.size() >= (ways == "gs" ? 3u : multicast ? 5u : 4u);
}
ROW("cp.async.bulk", prepare_bulk_copy);

// -- reductions ----------------------------------------------------------------------------------

void bulk_reduce_to_global(Warp& warp, Cta* from, uint64_t target, uint64_t origin, uint64_t size,
                           Reduce reduce) {
  const Doer doer = copies::bulk(warp);
  copies::in_group<copies::BulkGroups>(doer, [=] {
    Memory& memory = doer.warp->machine->memory;
    const uint8_t* data = copies::read_run(from->shared, offset_of(origin), size, doer);
    copies::reduce_run(memory, target - memory.base, data, size, reduce, doer);
  });
}

void bulk_reduce_to_peer(Warp& warp, Cta* from, uint64_t target, uint64_t origin, uint64_t size,
                         uint64_t barrier, Reduce reduce) {
  Cta* to = &peer(warp, rank_of(target));
  const mbarrier::Place at = mbarrier::find(warp, barrier);
  const Doer doer = copies::completing(*at.cta, at.offset, warp);
  if (from == to) doubt("a bulk reduction within one CTA");
  copies::alone(doer, [=] {
    const uint8_t* data = copies::read_run(from->shared, offset_of(origin), size, doer);
    copies::reduce_run(to->shared, offset_of(target), data, size, reduce, doer);
    mbarrier::complete(*at.cta, at.offset, doer, size);
  });
}

// The reduction is what `plan` points to.
Step run_bulk_reduce(Warp& warp, Split&, const Instr& instr, Mask mask) {
  const Form& form = *instr.form;
  const Reduce reduce = *static_cast<const Reduce*>(instr.plan.get());
  uint64_t to[WIDTH], from[WIDTH], barrier[WIDTH];
  uint32_t room[WIDTH];
  addresses(warp, form.sources[0], to);
  addresses(warp, form.sources[1], from);
  const uint32_t* size = values(warp, instr.source(2), room);
  if (instr.arg[BULK_WAY] == TO_PEER) addresses(warp, form.sources[3], barrier);
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    check_bulk(offset_of(from[lane]), offset_of(to[lane]), size[lane]);
    Cta* origin = &peer(warp, rank_of(from[lane]));
    if (instr.arg[BULK_WAY] == TO_PEER)
      bulk_reduce_to_peer(warp, origin, to[lane], from[lane], size[lane], barrier[lane], reduce);
    else
      bulk_reduce_to_global(warp, origin, to[lane], from[lane], size[lane], reduce);
  }
  return Step::DONE;
}

bool prepare_bulk_reduce(Instr& instr) {
  const Form& form = *instr.form;
  const std::string ways = directions(form);
  const Reduce reduce = reduction_of(operation_of(form), form.type());
  if (!reduce || (ways != "gs" && ways != "ss")) return false;
  instr.arg[BULK_WAY] = ways == "gs" ? TO_GLOBAL : TO_PEER;
  instr.plan = std::make_shared<Reduce>(reduce);
  instr.control = run_bulk_reduce;
  return form.sources.size() >= (ways == "gs" ? 3u : 4u);
}
ROW("cp.reduce.async.bulk", prepare_bulk_reduce);

// -- groups --------------------------------------------------------------------------------------

Step run_bulk_commit(Warp& warp, Split&, const Instr&, Mask mask) {
  warp.units.of<copies::BulkGroups>().commit(mask);
  return Step::DONE;
}

Step run_bulk_wait(Warp& warp, Split&, const Instr& instr, Mask mask) {
  warp.units.of<copies::BulkGroups>().finish(warp, instr.arg[0], mask);
  return Step::DONE;
}

bool prepare_bulk_commit(Instr& instr) {
  instr.control = run_bulk_commit;
  return true;
}
ROW("cp.async.bulk.commit_group", prepare_bulk_commit);

// `.read` is no different: the writes of a group are done when it is.
bool prepare_bulk_wait(Instr& instr) {
  if (instr.form->constants.empty() || instr.form->constants[0] < 0) return false;
  instr.arg[0] = instr.form->constants[0];
  instr.control = run_bulk_wait;
  return true;
}
ROW("cp.async.bulk.wait_group", prepare_bulk_wait);

}  // namespace
}  // namespace kernelpack
