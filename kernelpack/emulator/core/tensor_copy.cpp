// Tensor copies through the TMA unit (PTX ISA 9.7.9.27.1; semantics/tensor_copy.py is the
// definition). Elements that change on the way are left to Python.
#include <algorithm>

#include "tensor_map.hpp"

namespace kernelpack {
namespace {

using mbarrier::offset_of;
using mbarrier::rank_of;

// How a tensor copy is written, in `Instr::arg`: flags, and how many coordinates it has.
enum TensorArg { TENSOR_HOW = 0, TENSOR_COORDINATES = 1 };
constexpr int64_t IS_BY_ROWS = 1, IS_MULTICAST = 2, OF_PAIR = 4;

constexpr uint8_t NAN_FILL[2] = {0xf7, 0x7f};  // a NaN in each 16 bits, hence in every float

// -- bytes of a box
// --------------------------------------------------------------------------------

// Whole words in order; where the rows' parts inside are no whole words, each word once, sorted.
void note_cells(copies::Cells& cells, uint64_t offset, int64_t size) {
  const uint64_t first = offset / 4, end = (offset + size + 3) / 4;
  const size_t before = cells.size();
  cells.resize(before + (end - first));
  std::iota(cells.begin() + before, cells.end(), static_cast<uint32_t>(first));
}

void sort_cells(copies::Cells& cells, int64_t size) {
  if (size % 4 == 0) return;
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
}

// What a load writes where the tensor is not: bytes of the box from one on, up to another.
void fill(const TensorMap& map, uint8_t* bytes, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; ++i) bytes[i] = map.fills_with_nan ? NAN_FILL[i % 2] : 0;
}

// The box's bytes out of global memory, in the order in which it lies there.
void read_box(const Box& box, const Doer& doer, std::vector<uint8_t>& bytes) {
  const Memory& memory = doer.warp->machine->memory;
  const int64_t row_bytes = box.map->row_bytes(), low = box.low(), size = box.high() - low;
  copies::Cells& cells = copies::room(doer).cells;
  cells.clear();
  bytes.resize(box.bytes());
  if (size <= 0) return fill(*box.map, bytes.data(), 0, box.bytes());
  int64_t done = 0;
  box.for_each_row([&](int64_t row, uint64_t address) {
    const uint64_t offset = address - memory.base + low;
    memory.check_read(offset, size);
    note_cells(cells, offset, size);
    const int64_t at = row * row_bytes + low;
    fill(*box.map, bytes.data(), done, at);
    std::memcpy(bytes.data() + at, memory.bytes + offset, size);
    done = at + size;
  });
  fill(*box.map, bytes.data(), done, box.bytes());
  sort_cells(cells, size);
  copies::tell(memory, cells, doer, false);
}

// The part of the box that is inside the tensor, into global memory: stored, or reduced.
void write_box(const Box& box, const Doer& doer, const std::vector<uint8_t>& bytes, Reduce reduce) {
  Machine& machine = *doer.warp->machine;
  Memory& memory = machine.memory;
  const int64_t row_bytes = box.map->row_bytes(), low = box.low(), size = box.high() - low;
  copies::Cells& cells = copies::room(doer).cells;
  cells.clear();
  ++machine.changes;
  if (size <= 0) return;
  const auto offset_in = [&](uint64_t address) { return address - memory.base + low; };
  box.for_each_row([&](int64_t, uint64_t address) {
    if (reduce) memory.check_read(offset_in(address), size);
    memory.check_write(offset_in(address), size);
    note_cells(cells, offset_in(address), size);
  });
  sort_cells(cells, size);
  copies::tell(memory, cells, doer, true);
  box.for_each_row([&](int64_t row, uint64_t address) {
    uint8_t* to = memory.bytes + offset_in(address);
    const uint8_t* from = bytes.data() + row * row_bytes + low;
    if (reduce)
      reduce(to, from, size);
    else
      std::memcpy(to, from, size);
  });
}

// Calls `move(start, at)` for each unit: its place in shared memory, and in the box.
template <int size, typename Move>
void for_each_unit(const Placed& places, Move move) {
  size_t at = 0;
  for (const uint32_t start : places.starts) move(start, at, size), at += size;
}

template <typename Move>
void for_each_unit(const Box& box, const Placed& places, Move move) {
  switch (box.map->unit_bytes()) {
    case 16: return for_each_unit<16>(places, move);
    case 12: return for_each_unit<12>(places, move);
    case 8: return for_each_unit<8>(places, move);
    default: doubt("a box of other units");
  }
}

void scatter_box(const Box& box, Cta& cta, const Doer& doer, const std::vector<uint8_t>& bytes) {
  Memory& shared = cta.shared;
  const Placed& places = placed(*cta.machine, box);
  if (box.map->fills_lines())
    shared.check_write(box.shared, box.bytes());
  else
    for_each_unit(box, places,
                  [&](uint32_t start, size_t, int size) { shared.check_write(start, size); });
  copies::tell(shared, places.cells, doer, true, places.layout);
  for_each_unit(box, places, [&](uint32_t start, size_t at, int size) {
    std::memcpy(shared.bytes + start, bytes.data() + at, size);
  });
  ++cta.machine->changes;
  if (!cta.machine->bus.watched()) return;
  const int pattern = static_cast<int>(box.map->swizzle);
  cta.machine->bus.swizzled(
      Swizzled{&shared.unit, places.cells.data(), places.cells.size(), true, pattern});
}

void gather_box(const Box& box, Cta& cta, const Doer& doer, std::vector<uint8_t>& bytes) {
  const Memory& shared = cta.shared;
  const Placed& places = placed(*cta.machine, box);
  bytes.resize(box.bytes());
  for_each_unit(box, places, [&](uint32_t start, size_t at, int size) {
    shared.check_read(start, size);
    std::memcpy(bytes.data() + at, shared.bytes + start, size);
  });
  copies::tell(shared, places.cells, doer, false, places.layout);
}

// -- loads and stores
// ------------------------------------------------------------------------------

// A box on its way to CTAs; each completes on the mbarrier at an offset of its partner.
struct BoxLoad {
  Box box;
  std::vector<std::pair<Cta*, Cta*>> targets;
  uint32_t barrier;
  Doer doer;

  void operator()() const {
    std::vector<uint8_t>& bytes = copies::room(doer).bytes;
    read_box(box, doer, bytes);
    const int64_t size = box.bytes();
    for (const auto& [cta, owner] : targets) {
      scatter_box(box, *cta, doer, bytes);
      mbarrier::complete(*owner, barrier, doer, size);
    }
  }
};

struct BoxStore {
  Box box;
  Cta* from;
  Doer doer;
  Reduce reduce;  // null: a plain store

  void operator()() const {
    std::vector<uint8_t>& bytes = copies::room(doer).bytes;
    gather_box(box, *from, doer, bytes);
    write_box(box, doer, bytes, reduce);
  }
};

// The map and the coordinates of an instruction's lanes.
struct BoxOperands {
  uint64_t map[WIDTH];
  const int32_t* at[5];
  int32_t room[5][WIDTH];
  int count;

  BoxOperands(Warp& warp, const Operand& operand, int coordinates) : count(coordinates) {
    addresses(warp, operand, map);
    for (int i = 0; i < count; ++i) at[i] = values(warp, operand.items[1 + i], room[i]);
  }

  Box box(Warp& warp, int lane, uint32_t shared, bool by_rows) const {
    Box made;
    made.map = read_map(warp, map[lane]);
    for (int i = 0; i < count; ++i) made.at[i] = at[i][lane];
    made.shared = shared;
    made.by_rows = by_rows;
    return made;
  }

  bool same(int a, int b) const {
    bool found = map[a] == map[b];
    for (int i = 0; i < count; ++i) found &= at[i][a] == at[i][b];
    return found;
  }
};

// Whose mbarrier a copy to the CTA of a rank completes on: its own; with `.cta_group::2` that of
// the CTA of its pair which the operand names.
Cta& completes_at(Warp& warp, uint32_t rank, uint64_t barrier, bool of_pair) {
  if (!of_pair) return peer(warp, rank);
  return peer(warp, (rank & ~1u) | (rank_of(barrier) & 1));
}

void start_load(Warp& warp, Box box, uint64_t barrier, uint32_t ranks, bool of_pair) {
  BoxLoad load{std::move(box), {}, offset_of(barrier), {}};
  for (uint32_t rank = 0; rank < 16; ++rank) {
    if (!(ranks >> rank & 1)) continue;
    Cta& cta = peer(warp, rank);
    load.targets.emplace_back(&cta, &completes_at(warp, rank, barrier, of_pair));
  }
  if (load.targets.empty()) doubt("a tensor copy to no CTA");
  load.doer = copies::completing(*load.targets[0].second, load.barrier, warp);
  const Doer doer = load.doer;
  copies::alone(doer, std::move(load));
}

Step run_tensor_load(Warp& warp, Split&, const Instr& instr, Mask mask) {
  const Form& form = *instr.form;
  const int64_t how = instr.arg[TENSOR_HOW];
  const int coordinates = static_cast<int>(instr.arg[TENSOR_COORDINATES]);
  uint64_t to[WIDTH], barrier[WIDTH];
  uint16_t ranks_room[WIDTH];
  addresses(warp, form.sources[0], to);
  const BoxOperands boxes(warp, form.sources[1], coordinates);
  addresses(warp, form.sources[2], barrier);
  const uint16_t* ranks = how & IS_MULTICAST ? values(warp, instr.source(3), ranks_room) : nullptr;
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    Box box = boxes.box(warp, lane, offset_of(to[lane]), how & IS_BY_ROWS);
    if (box.map->is_rounded) doubt("a tensor map whose elements are rounded");
    box.check(coordinates);
    start_load(warp, std::move(box), barrier[lane], ranks ? ranks[lane] : 1u << rank_of(to[lane]),
               how & OF_PAIR);
  }
  return Step::DONE;
}

// The reduction of a map's elements; halves, and elements that change on the way, have none here.
Reduce reduction_of(const TensorMap& map, const std::string& what) {
  static const char* const TYPES[] = {"", "", "u32", "s32", "u64", "s64", "", "f32", "f64"};
  const bool is_known = map.element < static_cast<int>(sizeof TYPES / sizeof *TYPES);
  const Reduce found = is_known ? kernelpack::reduction_of(what, TYPES[map.element]) : nullptr;
  if (!found) doubt("a reduction of elements that the core does not reduce");
  return found;
}

void start_store(Warp& warp, Box box, uint64_t shared, int coordinates, const std::string* what) {
  if (box.map->is_padded || box.map->is_rounded) doubt("a store through a map of this element");
  for (int i = 0; !box.by_rows && i < coordinates; ++i)
    if (box.at[i] < 0) doubt("a store that starts below 0");
  box.check(coordinates);
  Cta& cta = peer(warp, rank_of(shared));
  const Doer doer = copies::bulk(warp);
  const Reduce reduce = what ? reduction_of(*box.map, *what) : nullptr;
  if (reduce && box.may_overlap()) doubt("a reduction whose rows are the same bytes");
  copies::in_group<copies::BulkGroups>(doer, BoxStore{std::move(box), &cta, doer, reduce});
}

// The same store from several lanes is one store; of reductions each counts. `plan` is the name of
// the reduction, null of a store.
Step run_tensor_store(Warp& warp, Split&, const Instr& instr, Mask mask) {
  const Form& form = *instr.form;
  const int coordinates = static_cast<int>(instr.arg[TENSOR_COORDINATES]);
  const auto* what = static_cast<const std::string*>(instr.plan.get());
  const BoxOperands boxes(warp, form.sources[0], coordinates);
  uint64_t from[WIDTH];
  addresses(warp, form.sources[1], from);
  for (Mask left = mask; left;) {
    const int lane = first_lane(left);
    left &= left - 1;
    for (Mask rest = what ? 0 : left; rest; rest &= rest - 1) {
      const int other = first_lane(rest);
      if (from[other] == from[lane] && boxes.same(other, lane)) left &= ~(Mask{1} << other);
    }
    const bool by_rows = instr.arg[TENSOR_HOW] & IS_BY_ROWS;
    start_store(warp, boxes.box(warp, lane, offset_of(from[lane]), by_rows), from[lane],
                coordinates, what);
  }
  return Step::DONE;
}

// As many coordinates as the name says; gather4 and scatter4 have a column and four rows.
bool has_coordinates(const Form& form, const Operand& operand, bool by_rows, int64_t& count) {
  const std::string dimension = form.one_of({"1d", "2d", "3d", "4d", "5d"});
  if (dimension.empty() || (by_rows && dimension != "2d")) return false;
  count = by_rows ? 5 : dimension[0] - '0';
  return operand.is_address && static_cast<int64_t>(operand.items.size()) == 1 + count;
}

bool prepare_tensor_copy(Instr& instr) {
  const Form& form = *instr.form;
  const std::string ways = directions(form);
  if ((ways != "gs" && ways != "sg") || form.sources.size() < 2) return false;
  const bool is_store = ways == "gs";
  const bool by_rows = form.has("tile::gather4") || form.has("tile::scatter4");
  const bool multicast = form.has("multicast::cluster");
  if (!is_store && form.sources.size() < (multicast ? 4u : 3u)) return false;
  instr.arg[TENSOR_HOW] = (by_rows ? IS_BY_ROWS : 0) | (multicast ? IS_MULTICAST : 0) |
                          (form.has("cta_group::2") ? OF_PAIR : 0);
  instr.control = is_store ? run_tensor_store : run_tensor_load;
  const Operand& boxes = form.sources[is_store ? 0 : 1];
  return has_coordinates(form, boxes, by_rows, instr.arg[TENSOR_COORDINATES]);
}
ROW("cp.async.bulk.tensor", prepare_tensor_copy);

bool prepare_tensor_reduce(Instr& instr) {
  instr.plan = std::make_shared<std::string>(operation_of(*instr.form));
  return directions(*instr.form) == "gs" && prepare_tensor_copy(instr);
}
ROW("cp.reduce.async.bulk.tensor", prepare_tensor_reduce);

}  // namespace
}  // namespace kernelpack
