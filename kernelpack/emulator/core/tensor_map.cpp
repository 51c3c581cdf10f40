// Tensor maps decoded, and the places of a box (machine/tensor_map.py and models/tma.py are the
// definition). Measured rules of the TMA unit are cited there.
#include "tensor_map.hpp"

#include <algorithm>

namespace kernelpack {
namespace {

constexpr uint64_t MAP_BYTES = 128;
constexpr uint64_t MOST_ELEMENTS = 1 << 20;
constexpr uint64_t MAP_WINDOW = 0x7C0000000000;  // of parameters (semantics/spaces.py)

// Elements of a map, the numbers of spec/tensormap.Element.
constexpr int ELEMENT_BITS[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
constexpr int FP32_FTZ = 10, TF32_FTZ = 12, U4_ALIGN16 = 14, ELEMENTS = 16;

template <typename T>
T at_byte(const uint8_t* raw, int offset) {
  T found;
  std::memcpy(&found, raw + offset, sizeof found);
  return found;
}

// By mode and atomicity; -1 where there is none.
int swizzle_of(int mode, int atomicity) {
  if (mode < 3) return atomicity == 0 ? mode : -1;
  return mode == 3 && atomicity < 4 ? 3 + atomicity : -1;
}

// `_FORMAT` of tensor_map.py: 8 magic bytes, 8 bytes of kinds, then numbers without padding.
enum Field { RANK = 8, ELEMENT, MODE, INTERLEAVE, FILL, PROMOTION, ATOMICITY, CHANGED, ADDRESS };
constexpr int DIMS = 24, STRIDES = 44, BOX = 76, STEPS = 86;

void read_sides(const uint8_t* raw, TensorMap& map) {
  for (int dim = 0; dim < map.rank; ++dim) {
    map.dims[dim] = int64_t{at_byte<uint32_t>(raw, DIMS + 4 * dim)} + 1;
    map.box[dim] = at_byte<uint16_t>(raw, BOX + 2 * dim);
    map.steps[dim] = raw[STEPS + dim];
    if (map.box[dim] == 0 || map.steps[dim] == 0) doubt("a tensor map with a side of nothing");
    if (dim > 0) map.strides[dim - 1] = at_byte<uint64_t>(raw, STRIDES + 8 * (dim - 1));
  }
}

// A box's row must be whole units, and fit the swizzle; maps that the host made do.
void check_map(const TensorMap& map) {
  const int64_t row = map.row_bytes();
  if (map.box[0] * map.bits % 8 || row % map.unit_bytes() || row % 4)
    doubt("a tensor map whose rows are no whole units");
  const int64_t held = row / map.unit_bytes() * map.unit_pitch();
  if (map.swizzle != Swizzle::NONE && held > pattern_of(map.swizzle).span)
    doubt("a tensor map whose rows are wider than its swizzle");
}

std::shared_ptr<const TensorMap> decode(const uint8_t* raw) {
  auto map = std::make_shared<TensorMap>();
  const int element = raw[ELEMENT], swizzle = swizzle_of(raw[MODE], raw[ATOMICITY]);
  if (std::memcmp(raw, "KPTMAP01", 8)) doubt("a tensor copy through memory that holds no map");
  if (raw[CHANGED]) doubt("a tensor map that a kernel changed");
  map->rank = raw[RANK];
  if (map->rank < 1 || map->rank > 5 || element >= ELEMENTS || swizzle < 0 || raw[FILL] > 1)
    doubt("a tensor map that no host makes");
  if (raw[INTERLEAVE]) doubt("an interleaved tensor map");
  map->address = at_byte<uint64_t>(raw, ADDRESS);
  read_sides(raw, *map);
  map->swizzle = static_cast<Swizzle>(swizzle);
  map->element = element;
  map->bits = ELEMENT_BITS[element];
  map->is_padded = element >= U4_ALIGN16;
  map->is_rounded = element >= FP32_FTZ && element <= TF32_FTZ;
  map->fills_with_nan = raw[FILL] == 1;
  check_map(*map);
  return map;
}

const uint8_t* map_bytes(const Warp& warp, uint64_t address) {
  const Machine& machine = *warp.machine;
  const bool is_parameter = address >> 40 == MAP_WINDOW >> 40;
  const Memory& memory = is_parameter ? machine.parameters : machine.memory;
  const uint64_t start = address - (is_parameter ? MAP_WINDOW : memory.base);
  if (memory.size < MAP_BYTES || start > memory.size - MAP_BYTES)
    doubt("a tensor map outside a memory");
  return memory.bytes + start;
}

// The maps that a launch has read, by address.
struct Maps {
  struct Read {
    uint8_t raw[MAP_BYTES];
    std::shared_ptr<const TensorMap> map;
  };
  std::unordered_map<uint64_t, Read> read;
};

}  // namespace

std::shared_ptr<const TensorMap> read_map(Warp& warp, uint64_t address) {
  const uint8_t* raw = map_bytes(warp, address);
  Maps::Read& found = warp.machine->units.of<Maps>().read[address];
  if (!found.map || std::memcmp(found.raw, raw, MAP_BYTES)) {
    found.map = decode(raw);
    std::memcpy(found.raw, raw, MAP_BYTES);
  }
  return found.map;
}

int64_t Box::rows() const {
  if (by_rows) return 4;
  int64_t total = 1;
  for (int dim = 1; dim < map->rank; ++dim) total *= count(dim);
  return total;
}

bool Box::may_overlap() const {
  for (int row = 1; by_rows && row < 4; ++row)
    if (std::count(at + 1, at + 1 + row, at[1 + row])) return true;
  return map->may_overlap();
}

void Box::check(int coordinates) const {
  const TensorMap& m = *map;
  if (by_rows && (m.rank != 2 || m.box[1] != 1))
    doubt("a gather through a map that is not for one");
  if (!by_rows) {
    if (coordinates != m.rank) doubt("coordinates of another rank than the map's");
    int64_t elements = 1;
    for (int dim = 0; dim < m.rank; ++dim) elements *= count(dim);
    if (elements > static_cast<int64_t>(MOST_ELEMENTS)) doubt("a box of too many elements");
  }
  if (shared % 128) doubt("a box that does not start at a multiple of 128 bytes");
  if (static_cast<int64_t>(at[0]) * m.bits % 128) doubt("a coordinate that is not at 16 bytes");
}

// -- places in shared memory ---------------------------------------------------------------------

namespace {

struct PlacedKey {
  uint32_t start, rows, row_bytes, shape;
  bool operator==(const PlacedKey& o) const {
    return start == o.start && rows == o.rows && row_bytes == o.row_bytes && shape == o.shape;
  }
};

struct PlacedHash {
  size_t operator()(const PlacedKey& key) const {
    uint64_t h = (uint64_t{key.start} << 32 | key.rows) * 0x9e3779b97f4a7c15ull;
    h ^= (uint64_t{key.row_bytes} << 32 | key.shape) * 0xff51afd7ed558ccdull;
    return h ^ h >> 29;
  }
};

// A ring of gathered rows has a thousand places of few cells each, one of tiles a few of many.
struct AllPlaced {
  static constexpr size_t MOST_CELLS = 1 << 20;
  std::unordered_map<PlacedKey, Placed, PlacedHash> found;
  size_t cells = 0;
};

// A row starts a new line of the swizzle's pattern, however short it is; without one, rows follow
// one another.
Placed place_box(const Box& box) {
  const TensorMap& map = *box.map;
  const Pattern& pattern = pattern_of(map.swizzle);
  const int unit = map.unit_bytes(), step = map.unit_pitch();
  const uint32_t units = static_cast<uint32_t>(map.row_bytes() / unit);
  const uint32_t pitch = map.swizzle == Swizzle::NONE ? units * step : pattern.span;
  Placed made;
  made.layout = new_layout();
  const uint32_t rows = static_cast<uint32_t>(box.rows());
  made.starts.reserve(rows * units);
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t i = 0; i < units; ++i)
      made.starts.push_back(swizzled(pattern, box.shared + row * pitch + i * step));
  made.cells.reserve(made.starts.size() * unit / 4);
  for (const uint32_t start : made.starts)
    for (int word = 0; word < unit / 4; ++word) made.cells.push_back(start / 4 + word);
  return made;
}

}  // namespace

const Placed& placed(Machine& machine, const Box& box) {
  const TensorMap& map = *box.map;
  const PlacedKey key{
      box.shared, static_cast<uint32_t>(box.rows()), static_cast<uint32_t>(map.row_bytes()),
      static_cast<uint32_t>(map.swizzle) << 8 | static_cast<uint32_t>(map.unit_bytes())};
  AllPlaced& all = machine.units.of<AllPlaced>();
  const auto known = all.found.find(key);
  if (known != all.found.end()) return known->second;
  if (all.cells > AllPlaced::MOST_CELLS) all.found.clear(), all.cells = 0;
  Placed& made = all.found[key] = place_box(box);
  all.cells += made.cells.size();
  return made;
}

}  // namespace kernelpack
