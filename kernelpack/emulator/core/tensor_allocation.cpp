// tcgen05.alloc, dealloc and relinquish_alloc_permit (semantics/tensor_allocation.py,
// allocation.py; PTX ISA 9.7.16.7).
#include "tensor_areas.hpp"

namespace kernelpack {

namespace tensor_allocation {

bool is_pair(const Form& form) { return form.has("cta_group::2"); }

// The cells of whole columns, and their blocks.
std::vector<uint32_t> groups_of(int start, int columns) {
  std::vector<uint32_t> found;
  for (int group = 0; group < TENSOR_LANES / GROUP_LANES; ++group)
    for (int column = start; column < start + columns; ++column)
      found.push_back(group_at(group, column));
  return found;
}

std::vector<uint32_t> blocks_of(int start, int columns) {
  std::vector<uint32_t> found;
  for (int block = start / TENSOR_BLOCK; block < (start + columns) / TENSOR_BLOCK; ++block)
    found.push_back(block);
  return found;
}

uint32_t uniform(Warp& warp, const Slot& slot, Mask mask) {
  uint32_t room[WIDTH];
  return values<uint32_t>(warp, slot, room)[first_lane(mask)];
}

// A warp's part in an allocation, which a warp of each CTA of a pair makes together.
struct Request {
  Cta* cta;
  Members ctas;
  int columns;

  // The pair's other CTA has not asked.
  bool is_absent() {
    for (Cta* each : ctas)
      if (each != cta && !each->tensor.asked) return true;
    return false;
  }

  bool fits_at(int start) {
    for (Cta* each : ctas)
      for (int column = start; column < start + columns; ++column)
        if (each->tensor.busy[column]) return false;
    return true;
  }

  // The first column, or -1. A schedule that is late gives the last ones that are free, where a
  // neighbour on the multiprocessor may hold the first ones.
  int start() {
    if (is_absent()) return -1;
    const bool is_last = cta->machine->engine.tempo == Tempo::LAZY && cta->may_have_neighbour;
    int found = -1;
    for (int column = 0; column + columns <= TENSOR_COLUMNS && (is_last || found < 0);
         column += TENSOR_BLOCK)
      if (fits_at(column)) found = column;
    return found;
  }

  bool is_ready() { return cta->tensor.granted >= 0 || start() >= 0; }
};

Request request(Warp& warp, bool pair, int columns) {
  if (columns < TENSOR_BLOCK || columns > TENSOR_COLUMNS || (columns & (columns - 1)))
    doubt("a size of tcgen05.alloc");
  Request made{warp.cta, members(*warp.cta, pair), columns};
  TensorMemory& tensor = warp.cta->tensor;
  if (tensor.relinquished) doubt("tcgen05.alloc after tcgen05.relinquish_alloc_permit");
  if (tensor.granted < 0) {
    if (!tensor.asked)
      for (Cta* each : made.ctas) reach(warp, *each);
    tensor.asked = columns;
  }
  return made;
}

void grant(Cta& cta, int start, int columns) {
  TensorMemory& tensor = cta.tensor;
  if (!tensor.words) tensor.make(TENSOR_LANES * LANE_STRIDE);
  std::memset(tensor.busy + start, 1, columns);
  tensor.allocations[start] = columns;
  tensor.is_used = true;
  tensor.asked = 0;
  tensor.granted = start;
}

// allocation.granted: a unit of the first CTA says that the columns are theirs.
void tell_granted(Request& asked, int start) {
  Cta& lead = *asked.ctas.ctas[0];
  Bus& bus = lead.machine->bus;
  const int agent = lead.agent(Cta::Agent::TENSOR_ALLOC, 0);
  const auto groups = groups_of(start, asked.columns);
  for (Cta* cta : asked.ctas) {
    bus.acquire({agent, {Channel::TENSOR_FREE, cta->number}});
    bus.access({&cta->tensor.unit, groups.data(), groups.size(), agent, true});
  }
  bus.release({agent, {Channel::TENSOR_ALLOC, lead.number}});
}

// The first column; the warp that comes first allocates it in every CTA.
int take(Request& asked) {
  TensorMemory& tensor = asked.cta->tensor;
  if (tensor.granted < 0) {
    const int start = asked.start();
    for (Cta* cta : asked.ctas) grant(*cta, start, asked.columns);
    tell_granted(asked, start);
    ++asked.cta->machine->changes;
  }
  const int start = tensor.granted;
  tensor.granted = -1;
  return start;
}

// access.store of one word of shared memory by one lane.
void store_word(Warp& warp, int lane, uint64_t address, uint32_t word) {
  Cta& cta = peer(warp, static_cast<uint32_t>(address >> RANK_SHIFT));
  Memory& memory = cta.shared;
  const uint64_t offset = address & OFFSET_MASK;
  if (offset % 4) doubt("a misaligned address of tcgen05.alloc");
  warp.machine->current = &warp;
  memory.check(offset, 4);
  const auto same = [&memory, offset, word] {
    return !std::memcmp(memory.bytes + offset, &word, 4);
  };
  told(warp, memory, &offset, 1, 4, true, {}, Mask{1} << lane, Use::NONE, same);
  ++warp.machine->changes;
  memory.check_write(offset, 4);
  std::memcpy(memory.bytes + offset, &word, 4);
}

// allocation.taken
void tell_taken(Warp& warp, Request& asked, int start) {
  Bus& bus = warp.machine->bus;
  bus.acquire({warp.agent, {Channel::TENSOR_ALLOC, asked.ctas.ctas[0]->number}});
  if (asked.ctas.count < 2) return;
  const auto blocks = blocks_of(start, asked.columns);
  bus.access(
      {&warp.cta->tensor.ends, blocks.data(), blocks.size(), warp.agent, false, Proxy::TENSOR});
}

Step allocate(Warp& warp, Split& split, const Instr& instr, Mask mask) {
  const bool pair = instr.arg[0];
  check_group(*warp.machine, pair);
  Request asked = request(warp, pair, static_cast<int>(uniform(warp, instr.source(1), mask)));
  if (!asked.is_ready()) {
    split.wait_for([asked]() mutable { return asked.is_ready(); });
    return Step::WAIT;
  }
  uint64_t at[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  const int start = take(asked);
  store_word(warp, first_lane(mask), at[first_lane(mask)], start);
  tell_taken(warp, asked, start);
  return Step::DONE;
}

// allocation.freed
void tell_freed(Warp& warp, Members ctas, int start, int columns) {
  Bus& bus = warp.machine->bus;
  const auto groups = groups_of(start, columns), blocks = blocks_of(start, columns);
  bus.access(
      {&warp.cta->tensor.unit, groups.data(), groups.size(), warp.agent, true, Proxy::TENSOR});
  for (Cta* cta : ctas) {
    if (cta == warp.cta) continue;
    for (const Unit* unit : {&cta->tensor.ends, &cta->tensor.uses})
      bus.access(
          {unit, blocks.data(), blocks.size(), warp.agent, true, Proxy::TENSOR, 0, nullptr, true});
  }
  bus.release({warp.agent, {Channel::TENSOR_FREE, warp.cta->number}});
}

Step deallocate(Warp& warp, Split&, const Instr& instr, Mask mask) {
  check_group(*warp.machine, instr.arg[0]);
  TensorMemory& tensor = warp.cta->tensor;
  const int start = static_cast<int>(uniform(warp, instr.source(0), mask));
  const int columns = static_cast<int>(uniform(warp, instr.source(1), mask));
  const auto found = tensor.allocations.find(start);
  if (found == tensor.allocations.end() || found->second != columns)
    doubt("tcgen05.dealloc of no allocation");
  tell_freed(warp, members(*warp.cta, instr.arg[0]), start, columns);
  tensor.allocations.erase(found);
  std::memset(tensor.busy + start, 0, columns);
  for (int lane = 0; lane < TENSOR_LANES; ++lane)
    std::memset(&tensor.written[cell_at(lane, start)], 0, columns);
  warp.cta->units.of<WrittenAreas>().known.clear();
  ++warp.machine->changes;
  return Step::DONE;
}

Step relinquish(Warp& warp, Split&, const Instr& instr, Mask) {
  check_group(*warp.machine, instr.arg[0]);
  warp.cta->tensor.relinquished = true;
  return Step::DONE;
}

bool prepare_allocate(Instr& instr) {
  instr.arg[0] = is_pair(*instr.form);
  instr.control = allocate;
  return instr.form->space == "shared";
}

bool prepare_deallocate(Instr& instr) {
  instr.arg[0] = is_pair(*instr.form);
  instr.control = deallocate;
  return true;
}

bool prepare_relinquish(Instr& instr) {
  instr.arg[0] = is_pair(*instr.form);
  instr.control = relinquish;
  return true;
}

ROW("tcgen05.alloc", prepare_allocate);
ROW("tcgen05.dealloc", prepare_deallocate);
ROW("tcgen05.relinquish_alloc_permit", prepare_relinquish);

}  // namespace tensor_allocation

}  // namespace kernelpack
