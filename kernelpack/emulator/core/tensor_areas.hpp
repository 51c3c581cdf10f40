// Tensor memory: where matrices lie in it, and how it is read and written
// (models/tensor_memory.py, models/tensor_registers.py, semantics/tensor_memory.py; PTX
// ISA 9.7.16).
#pragma once

#include <algorithm>
#include <array>
#include <unordered_map>

#include "machine.hpp"

namespace kernelpack {

constexpr int TENSOR_BLOCK = 32;  // columns that are allocated at least
constexpr int GROUP_LANES = 16;   // lanes that the checks take together
constexpr int COLUMN_BLOCKS = TENSOR_COLUMNS / TENSOR_BLOCK;

inline int lane_of(uint32_t address) { return address >> 16; }
inline int column_of(uint32_t address) { return address & 0xffff; }
// Of the checks.
inline uint32_t group_at(int group, int column) { return group * TENSOR_COLUMNS + column; }
// Of the words: lanes a power of two apart would share few lines of a processor's cache.
constexpr int LANE_STRIDE = TENSOR_COLUMNS + 16;
inline uint32_t cell_at(int lane, int column) { return lane * LANE_STRIDE + column; }

// Cells of tensor memory: runs of `width` columns, as many of them as `starts`, in the order of a
// matrix. `groups` are the cells as the checks know them; all columns lie in one range.
struct Area {
  std::vector<uint32_t> starts;
  uint32_t width = 1;
  std::vector<uint32_t> groups, blocks;
  int first = 0, columns = 0;
  int64_t layout = 0;  // a number of `groups`
};

// Completes an area whose runs are known.
static Area with_groups(Area area) {
  int least = TENSOR_COLUMNS, most = 0;
  std::vector<bool> touched(TENSOR_LANES / GROUP_LANES * TENSOR_COLUMNS);
  for (uint32_t start : area.starts) {
    const int lane = start / LANE_STRIDE, column = start % LANE_STRIDE;
    if (lane >= TENSOR_LANES || column + area.width > TENSOR_COLUMNS)
      doubt("columns or lanes beyond tensor memory");
    least = std::min(least, column);
    most = std::max(most, column + static_cast<int>(area.width));
    for (uint32_t k = 0; k < area.width; ++k)
      touched[group_at(lane / GROUP_LANES, column + k)] = true;
  }
  for (uint32_t cell = 0; cell < touched.size(); ++cell)
    if (touched[cell]) area.groups.push_back(cell);
  area.layout = new_layout();
  area.first = least;
  area.columns = most - least;
  for (int block = least / TENSOR_BLOCK; block <= (most - 1) / TENSOR_BLOCK; ++block)
    area.blocks.push_back(block);
  return area;
}

// -- layouts ---------------------------------------------------------------------------------

// How many groups of columns stand on top of each other: 4 in layout G, 2 in E and B.
inline int fold_of(int m, int cta_group, bool ws) {
  const bool known =
      ws ? m == 32 || m == 64 || m == 128 : m == 64 * cta_group || m == 128 * cta_group;
  if (!known) doubt("a matrix that has no layout in tensor memory");
  if (ws) return 128 / m;
  return cta_group == 2 && m == 128 ? 2 : 1;
}

// The lane of a row; layout F has 64 rows in 16 lanes of each quadrant.
inline int lane_of_row(int row, int rows, int fold) {
  return rows == 64 && fold == 1 ? row / 16 * 32 + row % 16 : row;
}

inline void check_lane(int lane, int rows, int fold) {
  if (lane != 0 && !(lane == 16 && rows == 64 && fold == 1))
    doubt("a matrix at another lane than its layout's");
}

// D: of each row its parts, one in each group of lanes.
static Area accumulator_area(int m, int n, int cta_group, bool ws, uint32_t address) {
  const int rows = m / cta_group, fold = fold_of(m, cta_group, ws);
  check_lane(lane_of(address), rows, fold);
  Area area;
  area.width = n / fold;
  for (int row = 0; row < rows; ++row)
    for (int group = 0; group < fold; ++group)
      area.starts.push_back(cell_at(lane_of(address) + lane_of_row(row, rows, fold) + rows * group,
                                    column_of(address)));
  return with_groups(std::move(area));
}

// A: of each group of lanes its rows.
static Area a_area(int m, int cta_group, bool ws, int words, uint32_t address) {
  const int rows = m / cta_group, fold = fold_of(m, cta_group, ws);
  check_lane(lane_of(address), rows, fold);
  Area area;
  area.width = words;
  for (int group = 0; group < fold; ++group)
    for (int row = 0; row < rows; ++row)
      area.starts.push_back(cell_at(lane_of(address) + lane_of_row(row, rows, fold) + rows * group,
                                    column_of(address)));
  return with_groups(std::move(area));
}

// Scale factors: copies of rows; row r in lane r % 32, column r / 32. Of halves, quadrants 0-1 hold
// the first half of the rows and 2-3 the second.
static Area scales_area(int rows, uint32_t address, bool halves) {
  const int per_half = halves ? rows / 2 : rows;
  Area area;
  for (int copy = 0; copy < (halves ? 2 : 4); ++copy)
    for (int row = 0; row < rows; ++row) {
      const int quadrant = halves ? row / per_half * 2 + copy : copy, own = row % per_half;
      const int column = column_of(address) + own / 32;
      if (column >= TENSOR_COLUMNS) doubt("columns beyond tensor memory");
      area.starts.push_back(cell_at(32 * quadrant + own % 32, column));
    }
  return with_groups(std::move(area));
}

// Rows of tcgen05.cp, copied to several warps' lanes.
static Area copy_area(int rows, int words, int apart, int copies, bool by_halves,
                      uint32_t address) {
  if (lane_of(address)) doubt("tcgen05.cp to another lane than 0");
  Area area;
  area.width = words;
  for (int copy = 0; copy < copies; ++copy)
    for (int row = 0; row < rows; ++row) {
      const int lane = by_halves ? row / 32 * 64 + row % 32 : row;
      area.starts.push_back(cell_at(lane + apart * copy, column_of(address)));
    }
  return with_groups(std::move(area));
}

enum class RegisterShape : uint8_t { S32X32, S16X64, S16X128, S16X256 };
constexpr int REGISTERS_OF[] = {1, 1, 2, 4};

// tcgen05.ld and st: the cell of each register of each thread.
static Area registers_area(RegisterShape shape, int registers, uint32_t address) {
  if (lane_of(address) % 16) doubt("registers at a lane that is no multiple of 16");
  const int count = REGISTERS_OF[static_cast<int>(shape)],
            rows = shape == RegisterShape::S32X32 ? 32 : 16;
  if (lane_of(address) % 32 + rows > 32) doubt("registers of two quadrants of tensor memory");
  Area area;
  for (int i = 0; i < registers; ++i)
    for (int t = 0; t < WIDTH; ++t) {
      const int repetition = i / count, part = i % count, half = std::max(count / 2, 1);
      const int high = part / half, low = part % half;
      int lane = t, column = repetition;
      if (shape == RegisterShape::S16X64)
        lane = t / 4 + 8 * (t % 2), column = t / 2 % 2 + 2 * repetition;
      if (shape == RegisterShape::S16X128) lane = t / 4 + 8 * high, column = t % 4 + 4 * repetition;
      if (shape == RegisterShape::S16X256)
        lane = t / 4 + 8 * high, column = 2 * (t % 4) + low + 8 * repetition;
      const int at = column_of(address) + column;
      if (at >= TENSOR_COLUMNS) doubt("columns beyond tensor memory");
      area.starts.push_back(cell_at(lane_of(address) + lane, at));
    }
  return with_groups(std::move(area));
}

// Areas that were asked for, by what they are and where.
struct Areas {
  using Key = std::array<uint64_t, 2>;
  struct Hash {
    size_t operator()(const Key& key) const {
      const uint64_t h = (key[0] ^ key[1] * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
      return h ^ h >> 31;
    }
  };
  std::unordered_map<Key, std::unique_ptr<Area>, Hash> known;
};
enum class AreaOf : uint8_t { ACCUMULATOR, A, SCALES, COPY, REGISTERS };

// Numbers of at most 12 bits that tell an area from others of its kind.
inline uint64_t area_key(AreaOf of, int a, int b = 0, int c = 0, int d = 0) {
  return static_cast<uint64_t>(of) << 56 | uint64_t(a) << 36 | uint64_t(b) << 24 |
         uint64_t(c) << 12 | uint64_t(d);
}

// They serve later runs too: see `keep_few_layouts`.
inline Areas& areas() {
  static thread_local Areas kept;
  return kept;
}

template <typename Make>
const Area& area(uint64_t key, uint32_t address, Make make) {
  auto& slot = areas().known[{key, address}];
  if (!slot) slot = std::make_unique<Area>(make());
  return *slot;
}

// -- reads and writes ------------------------------------------------------------------------

inline void check_columns(const Cta& cta, const Area& where) {
  for (int column = where.first; column < where.first + where.columns; ++column)
    if (!cta.tensor.busy[column]) doubt("tensor memory that is not allocated");
}

inline void tell_area(Cta& cta, const Area& where, int agent, bool write) {
  Bus& bus = cta.machine->bus;
  if (!bus.watched()) return;
  bus.access({&cta.tensor.unit, where.groups.data(), where.groups.size(), agent, write,
              Proxy::TENSOR, where.layout});
  if (cta.machine->tensor_group == 2)
    bus.access(
        {&cta.tensor.uses, where.blocks.data(), where.blocks.size(), agent, false, Proxy::TENSOR});
}

// Areas of a CTA's tensor memory that were written as a whole since its columns were allocated.
struct WrittenAreas {
  std::vector<const Area*> known;
  bool has(const Area& area) const {
    return std::find(known.begin(), known.end(), &area) != known.end();
  }
  void add(const Area& area) {
    if (known.size() == MOST) known.clear();
    known.push_back(&area);
  }

private:
  static constexpr size_t MOST = 16;
};

// An area is read: allocated and written it must be. Its words are for the caller to take.
static void read_area(Cta& cta, const Area& where, int agent) {
  check_columns(cta, where);
  WrittenAreas& areas = cta.units.of<WrittenAreas>();
  if (!areas.has(where)) {
    const uint8_t* written = cta.tensor.written;
    for (uint32_t start : where.starts)
      if (std::memchr(written + start, 0, where.width))
        doubt("a read of tensor memory never written");
    areas.add(where);
  }
  tell_area(cta, where, agent, false);
}

// An area is about to be written: the caller puts its words there.
static void write_area(Cta& cta, const Area& where, int agent) {
  check_columns(cta, where);
  tell_area(cta, where, agent, true);
  ++cta.machine->changes;
  WrittenAreas& areas = cta.units.of<WrittenAreas>();
  if (areas.has(where)) return;
  for (uint32_t start : where.starts) std::memset(&cta.tensor.written[start], 1, where.width);
  areas.add(where);
}

// The CTAs an instruction works on: its own, or the pair, the even one first.
struct Members {
  Cta* ctas[2];
  int count;
  Cta** begin() { return ctas; }
  Cta** end() { return ctas + count; }
};

inline Members members(Cta& cta, bool is_pair) {
  if (!is_pair) return {{&cta, nullptr}, 1};
  const size_t even = cta.rank & ~1;
  if (even + 1 >= cta.cluster->ctas.size()) doubt("cta_group::2 in a cluster without a pair");
  return {{cta.cluster->ctas[even].get(), cta.cluster->ctas[even + 1].get()}, 2};
}

// Every tcgen05 instruction of a kernel has the same cta_group (PTX ISA 9.7.16.5).
inline void check_group(Machine& machine, bool is_pair) {
  const int group = is_pair ? 2 : 1;
  if (!machine.tensor_group) machine.tensor_group = group;
  if (machine.tensor_group != group) doubt("both cta_groups in one kernel");
}

}  // namespace kernelpack
