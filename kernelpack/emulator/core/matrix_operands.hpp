// Operands of tensor-core instructions in shared memory: descriptors, the bytes they name, and
// their numbers (models/mma_descriptor.py, semantics/matrix_operands.py; PTX ISA 9.7.16.4.1,
// 9.7.15.5.1.2 and 9.7.16.3.3).
#pragma once

#include <algorithm>
#include <unordered_map>

#include "elements.hpp"
#include "machine.hpp"
#include "products.hpp"
#include "swizzle.hpp"

namespace kernelpack {

enum class MatrixUnit : uint8_t { TCGEN05, WGMMA };

struct SharedDescriptor {
  uint32_t start, leading, stride, pattern_start;
  Swizzle swizzle;
};

// A descriptor that a lint has nothing to say about at level `warn`.
static SharedDescriptor read_descriptor(MatrixUnit unit, uint64_t raw) {
  SharedDescriptor found{};
  found.start = (raw & 0x3fff) << 4;
  found.leading = (raw >> 16 & 0x3fff) << 4;
  found.stride = (raw >> 32 & 0x3fff) << 4;
  found.pattern_start = (raw >> 49 & 7) * 128;
  if (unit == MatrixUnit::WGMMA) {
    constexpr Swizzle MODES[] = {Swizzle::NONE, Swizzle::B128, Swizzle::B64, Swizzle::B32};
    if ((raw >> 46 & 7) | (raw >> 52 & 0x3ff)) doubt("reserved bits of a matrix descriptor");
    found.swizzle = MODES[raw >> 62];
    return found;
  }
  if ((raw >> 46 & 7) != 1) doubt("the constant field of a matrix descriptor");
  if (raw >> 52 & 0x1ff) doubt("reserved bits of a matrix descriptor, or an absolute address");
  switch (raw >> 61 & 7) {
    case 0: found.swizzle = Swizzle::NONE; break;
    case 1: found.swizzle = Swizzle::B128_ATOM32; break;
    case 2: found.swizzle = Swizzle::B128; break;
    case 4: found.swizzle = Swizzle::B64; break;
    case 6: found.swizzle = Swizzle::B32; break;
    default: doubt("an invalid swizzle mode of a matrix descriptor");
  }
  return found;
}

// Which bytes an operand is: all of these, and nothing else.
struct RegionKey {
  uint64_t raw;
  uint32_t first, rows;  // rows of it, of those that the descriptor names
  uint16_t row_bytes;
  uint8_t element_bytes;  // where rows are contiguous, else 0
  MatrixUnit unit;
  bool operator==(const RegionKey& o) const {
    return raw == o.raw && first == o.first && rows == o.rows && row_bytes == o.row_bytes &&
           element_bytes == o.element_bytes && unit == o.unit;
  }
};

struct RegionHash {
  size_t operator()(const RegionKey& key) const {
    uint64_t h = key.raw * 0x9e3779b97f4a7c15ull;
    h ^= (uint64_t{key.first} << 40 ^ uint64_t{key.rows} << 16 ^ key.row_bytes) *
         0xff51afd7ed558ccdull;
    h ^= uint64_t{key.element_bytes} << 8 | static_cast<uint64_t>(key.unit);
    return h ^ h >> 29;
  }
};

// Where an operand lies: 16-byte chunks of each row, K ascending; or, where rows are contiguous,
// chunks of neighbouring rows at each depth. And its 4-byte cells, sorted, each once.
struct Region {
  std::vector<uint32_t> chunks, cells;
  uint32_t rows = 0, row_bytes = 0, element_bytes = 0;
  Swizzle swizzle = Swizzle::NONE;
  int64_t layout = 0;  // a number of `cells`
};

// K contiguous: 8-row groups `stride` apart; without swizzle 16-byte columns `leading` apart.
static void k_major(const SharedDescriptor& from, const RegionKey& key, Region& to) {
  const Pattern& pattern = pattern_of(from.swizzle);
  const bool plain = from.swizzle == Swizzle::NONE;
  for (uint32_t row = key.first; row < key.first + key.rows; ++row)
    for (uint32_t chunk = 0; chunk < key.row_bytes / 16u; ++chunk) {
      const uint32_t along =
          plain ? row % 8 * 16 + chunk * from.leading : row % 8 * pattern.span + chunk * 16;
      to.chunks.push_back(from.start + row / 8 * from.stride + along);
    }
}

// Rows contiguous, `span` bytes of them; K goes down the lines of the pattern.
static void mn_major(const SharedDescriptor& from, const RegionKey& key, Region& to) {
  const Pattern& pattern = pattern_of(from.swizzle);
  const bool plain = from.swizzle == Swizzle::NONE;
  const uint32_t lines = from.swizzle == Swizzle::B128_ATOM32 ? 4 : 8;
  const uint32_t along_rows = plain ? from.stride : from.leading;
  const uint32_t along_k = plain ? from.leading : from.stride;
  const uint32_t per_line = pattern.span / key.element_bytes, per_chunk = 16 / key.element_bytes;
  if (key.first % per_chunk || key.rows % per_chunk)
    doubt("part of 16 bytes of a transposed operand");
  for (uint32_t depth = 0; depth < key.row_bytes / key.element_bytes; ++depth)
    for (uint32_t row = key.first; row < key.first + key.rows; row += per_chunk)
      to.chunks.push_back(from.start + row / per_line * along_rows +
                          row % per_line * key.element_bytes + depth / lines * along_k +
                          depth % lines * pattern.span);
}

static Region make_region(const RegionKey& key) {
  const SharedDescriptor from = read_descriptor(key.unit, key.raw);
  if (key.row_bytes % 16) doubt("an operand whose rows are not of 16 bytes");
  Region made;
  made.layout = new_layout();
  made.rows = key.rows;
  made.row_bytes = key.row_bytes;
  made.element_bytes = key.element_bytes;
  made.swizzle = from.swizzle;
  if (key.element_bytes)
    mn_major(from, key, made);
  else
    k_major(from, key, made);
  const Pattern& pattern = pattern_of(from.swizzle);
  for (uint32_t& chunk : made.chunks) chunk = swizzled(pattern, chunk, from.pattern_start);
  for (uint32_t chunk : made.chunks)
    for (uint32_t cell = 0; cell < 4; ++cell) made.cells.push_back(chunk / 4 + cell);
  std::sort(made.cells.begin(), made.cells.end());
  made.cells.erase(std::unique(made.cells.begin(), made.cells.end()), made.cells.end());
  return made;
}

struct Regions {
  std::unordered_map<RegionKey, std::unique_ptr<Region>, RegionHash> known;
};

// They serve later runs too: see `keep_few_layouts`.
inline Regions& regions() {
  static thread_local Regions kept;
  return kept;
}

static const Region& region(const RegionKey& key) {
  auto& slot = regions().known[key];
  if (!slot) slot = std::make_unique<Region>(make_region(key));
  return *slot;
}

// Operands of a CTA that were found written as a whole: what is written stays so.
class WrittenOperands {
public:
  bool has(const Region& where) const { return known_[place(where)] == where.layout; }
  void add(const Region& where) { known_[place(where)] = where.layout; }

private:
  static constexpr size_t MOST = 256;
  static size_t place(const Region& where) { return static_cast<size_t>(where.layout) % MOST; }
  int64_t known_[MOST] = {};
};

// An operand is read through the async proxy: the checks hear of it, and each byte was written.
static void tell_operand(Cta& cta, const Region& where, int agent) {
  Bus& bus = cta.machine->bus;
  if (where.cells.back() >= cta.shared.unit.cells) doubt("a matrix operand outside shared memory");
  if (bus.watched()) {
    bus.access({&cta.shared.unit, where.cells.data(), where.cells.size(), agent, false,
                Proxy::ASYNC, where.layout});
    bus.swizzled({&cta.shared.unit, where.cells.data(), where.cells.size(), false,
                  static_cast<int>(where.swizzle)});
  }
  WrittenOperands& operands = cta.units.of<WrittenOperands>();
  if (operands.has(where)) return;
  for (uint32_t chunk : where.chunks) cta.shared.check_read(chunk, 16);
  operands.add(where);
}

// -- numbers ---------------------------------------------------------------------------------

// The numbers of a side of a product, as `products.hpp` wants them, and their exponents.
struct Side {
  alignas(64) double values[MOST_COLUMNS * MOST_K];
  Range range;
};

// How a side is laid out: the number of (row, depth) is `values[row * by_row + depth * by_depth]`.
struct Strides {
  int by_row, by_depth;
};

// A chunk of numbers, `step` apart.
inline void scatter(const double* from, int count, double* to, int step) {
  if (step == 1) {
    std::memcpy(to, from, count * sizeof(double));
    return;
  }
  for (int i = 0; i < count; ++i) to[i * step] = from[i];
}

template <Element TYPE>
static void decode_chunks(const Region& where, const uint8_t* bytes, Strides strides, double* to) {
  constexpr int COUNT = per_chunk(TYPE);
  double numbers[COUNT];
  size_t at = 0;
  if (!where.element_bytes) {
    for (uint32_t row = 0; row < where.rows; ++row)
      for (uint32_t chunk = 0; chunk < where.row_bytes / 16; ++chunk, ++at) {
        numbers_of_chunk<TYPE>(bytes + where.chunks[at], numbers);
        scatter(numbers, COUNT, to + row * strides.by_row + chunk * COUNT * strides.by_depth,
                strides.by_depth);
      }
    return;
  }
  for (uint32_t depth = 0; depth < where.row_bytes / where.element_bytes; ++depth)
    for (uint32_t row = 0; row < where.rows; row += COUNT, ++at) {
      numbers_of_chunk<TYPE>(bytes + where.chunks[at], numbers);
      scatter(numbers, COUNT, to + row * strides.by_row + depth * strides.by_depth, strides.by_row);
    }
}

// The numbers of an operand that `tell_operand` has reported.
static void decode_operand(Element type, const Region& where, const uint8_t* bytes, Strides strides,
                           double* to) {
  switch (type) {
    case Element::FP16: return decode_chunks<Element::FP16>(where, bytes, strides, to);
    case Element::BF16: return decode_chunks<Element::BF16>(where, bytes, strides, to);
    case Element::TF32: return decode_chunks<Element::TF32>(where, bytes, strides, to);
    case Element::E4M3: return decode_chunks<Element::E4M3>(where, bytes, strides, to);
    case Element::E5M2: return decode_chunks<Element::E5M2>(where, bytes, strides, to);
    case Element::E2M1: return decode_chunks<Element::E2M1>(where, bytes, strides, to);
    default: doubt("an operand of a type that no matrix has");
  }
}

inline void negate(Side& side, size_t count) {
  for (size_t i = 0; i < count; ++i) side.values[i] = -side.values[i];
}

}  // namespace kernelpack
