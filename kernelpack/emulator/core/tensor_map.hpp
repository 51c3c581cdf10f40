// The 128 bytes that stand for a tensor map inside the emulator (machine/tensor_map.py), and which
// bytes a box of one is (models/tma.py).
#pragma once

#include <algorithm>

#include "copies.hpp"
#include "swizzle.hpp"

namespace kernelpack {

struct TensorMap {
  int rank = 0;
  int element = 0;  // a number of spec/tensormap.Element
  uint64_t address = 0;
  int64_t dims[5], strides[4], box[5], steps[5];  // bytes for strides, else elements
  Swizzle swizzle = Swizzle::NONE;
  int bits = 8;            // of an element
  bool is_padded = false;  // 16 elements stand in 16 bytes of shared memory, with a gap
  bool is_rounded = false;
  bool fills_with_nan = false;

  int64_t row_bytes() const { return box[0] * bits / 8; }
  int64_t dim_bytes() const { return dims[0] * bits / 8; }
  // Bytes of a row that stay together in shared memory, and how far apart such units are.
  int unit_bytes() const {
    if (is_padded) return 2 * bits;
    return pattern_of(swizzle).flip_8 ? 8 : 16;
  }
  // Whether the rows of a box leave no gaps in shared memory: then it is one run of bytes.
  bool fills_lines() const {
    return !is_padded && (swizzle == Swizzle::NONE || row_bytes() == pattern_of(swizzle).span);
  }
  // Whether rows of a box that are inside the tensor may have bytes in common.
  bool may_overlap() const {
    int64_t held = std::min(row_bytes(), dim_bytes());
    for (int dim = 1; dim < rank; ++dim) {
      if (strides[dim - 1] < held) return true;
      held = strides[dim - 1] * std::min(box[dim] * steps[dim], dims[dim]);
    }
    return false;
  }
  int unit_pitch() const { return is_padded ? 16 : unit_bytes(); }
};

// The map at a generic address: in the parameters, or in global memory.
std::shared_ptr<const TensorMap> read_map(Warp& warp, uint64_t address);

// One box of a map, in either direction. `at` are its coordinates; of `tile::gather4` and
// `tile::scatter4` a column and four rows.
struct Box {
  std::shared_ptr<const TensorMap> map;
  int32_t at[5];
  uint32_t shared = 0;
  bool by_rows = false;

  // Doubts where the TMA unit does not take it.
  void check(int coordinates) const;
  int64_t rows() const;
  int64_t bytes() const { return rows() * map->row_bytes(); }
  // Whether rows that are inside the tensor may have bytes in common.
  bool may_overlap() const;

  // The bytes from `low` to `high` of each row are inside dimension 0.
  int64_t column() const { return static_cast<int64_t>(at[0]) * map->bits / 8; }
  int64_t low() const { return std::max<int64_t>(0, -column()); }
  int64_t high() const { return std::min(map->row_bytes(), map->dim_bytes() - column()); }

  // Calls `visit(number, address)` for each row of the box whose outer coordinates are inside the
  // tensor, in order; the address is that of the row's byte 0.
  template <typename Visit>
  void for_each_row(Visit visit) const;

private:
  int64_t count(int dim) const { return (map->box[dim] + map->steps[dim] - 1) / map->steps[dim]; }
};

template <typename Visit>
void Box::for_each_row(Visit visit) const {
  const TensorMap& m = *map;
  if (by_rows) {
    for (int row = 0; row < 4; ++row)
      if (at[1 + row] >= 0 && at[1 + row] < m.dims[1])
        visit(row, m.address + at[1 + row] * m.strides[0] + column());
    return;
  }
  int64_t index[5] = {};
  const int64_t total = rows();
  for (int64_t row = 0; row < total; ++row) {
    int64_t offset = 0;
    bool inside = true;
    for (int dim = 1; dim < m.rank; ++dim) {
      const int64_t place = at[dim] + m.steps[dim] * index[dim];
      inside &= place >= 0 && place < m.dims[dim];
      offset += place * m.strides[dim - 1];
    }
    if (inside) visit(row, m.address + offset + column());
    for (int dim = 1; dim < m.rank && ++index[dim] == count(dim); ++dim) index[dim] = 0;
  }
}

// Where the units of a box stand in shared memory, in the order of its bytes, and their cells.
struct Placed {
  std::vector<uint32_t> starts;
  copies::Cells cells;
  int64_t layout = 0;  // a number of `cells`
};

// Kept, for the stages of a ring come round again and again.
const Placed& placed(Machine& machine, const Box& box);

}  // namespace kernelpack
