// The cells of an access, and how they lie: all in a row, in fours, or anyhow. Copies and operands
// come in pieces of 16 bytes at least; four neighbours are then compared, or set, at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kernelpack::checks {

constexpr size_t BLOCK = 512;  // cells that are looked at together
constexpr uint32_t block_of(uint32_t cell) { return cell / BLOCK; }

// From the lowest to the highest of some cells.
struct Extent {
  uint32_t low = UINT32_MAX, high = 0;
  bool empty() const { return low > high; }
  bool meets(const Extent& o) const { return low <= o.high && o.low <= high; }
  void add(const Extent& o) {
    low = std::min(low, o.low);
    high = std::max(high, o.high);
  }
};

struct Shape;

class Cells {
public:
  const uint32_t* at;
  size_t count;
  Extent extent;
  Shape* shape = nullptr;                         // that remembers them, if any
  const std::vector<uint32_t>* blocks = nullptr;  // the same

  Cells(const uint32_t* cells, size_t how_many) : at(cells), count(how_many) {
    if (is_row()) {
      lie_ = Lie::ROW;
      extent = {at[0], at[count - 1]};
    } else if (are_fours()) {
      lie_ = Lie::FOURS;
      for (size_t i = 0; i < count; i += 4) extent.add({at[i], at[i] + 3});
    } else {
      for (size_t i = 0; i < count; ++i) extent.add({at[i], at[i]});
    }
  }

  // The blocks that they lie in, some of them several times; few more where that is quicker.
  template <typename Each>
  void each_block(Each each) const {
    if (blocks) {
      for (const uint32_t block : *blocks) each(block);
      return;
    }
    const uint32_t first = block_of(extent.low), last = block_of(extent.high);
    if (lie_ == Lie::ROW || last - first < FEW_BLOCKS) {
      for (uint32_t block = first; block <= last; ++block) each(block);
      return;
    }
    const size_t stride = lie_ == Lie::FOURS ? 4 : 1;
    for (size_t i = 0; i < count; i += stride) each(block_of(at[i]));
    if (stride == 4)
      for (size_t i = 3; i < count; i += stride) each(block_of(at[i]));
  }

  template <typename T>
  void set(T* field, T value) const {
    if (lie_ == Lie::ROW)
      std::fill_n(field + at[0], count, value);
    else if (lie_ == Lie::FOURS)
      for (size_t i = 0; i < count; i += 4) std::fill_n(field + at[i], 4, value);
    else
      for (size_t i = 0; i < count; ++i) field[at[i]] = value;
  }

  // The later of what is there and a value.
  template <typename T>
  void raise(T* field, T value) const {
    for (size_t i = 0; i < count; ++i) field[at[i]] = std::max(field[at[i]], value);
  }

  // Whether any cell holds another value.
  bool any_other(const uint32_t* field, uint32_t value) const {
    return any(field, value, [](auto found, auto wanted) { return found ^ wanted; }) != 0;
  }
  // Whether any cell holds a greater one; none is below zero.
  bool any_above(const int32_t* field, int32_t value) const {
    return any(field, value, [](auto found, auto known) { return known - found; }) < 0;
  }

private:
  enum class Lie : uint8_t { ROW, FOURS, ANYHOW };
  static constexpr uint32_t FEW_BLOCKS = 8;

  // What `of` makes of each cell and a value, all bits together. Of vectors, as compilers do not
  // find them here.
  template <typename T, typename Of>
  T any(const T* field, T value, Of of) const {
    T found = 0;
    if (lie_ == Lie::FOURS) {
      typedef T Four __attribute__((vector_size(16)));
      const Four values = {value, value, value, value};
      Four all = {0, 0, 0, 0};
      for (size_t i = 0; i < count; i += 4) {
        Four four;
        std::memcpy(&four, field + at[i], sizeof four);
        all |= of(four, values);
      }
      found = all[0] | all[1] | all[2] | all[3];
    } else if (lie_ == Lie::ROW) {
      for (size_t i = 0; i < count; ++i) found |= of(field[at[0] + i], value);
    } else {
      for (size_t i = 0; i < count; ++i) found |= of(field[at[i]], value);
    }
    return found;
  }

  bool is_row() const {
    if (at[count - 1] - at[0] != count - 1) return false;
    uint32_t differ = 0;
    for (uint32_t i = 0; i < count; ++i) differ |= at[i] ^ (at[0] + i);
    return !differ;
  }
  bool are_fours() const {
    if (count % 4 || at[3] - at[0] != 3) return false;
    uint32_t differ[4] = {0, 0, 0, 0};
    for (size_t i = 0; i < count; i += 4)
      for (uint32_t k = 0; k < 4; ++k) differ[k] |= at[i + k] ^ (at[i] + k);
    return !(differ[0] | differ[1] | differ[2] | differ[3]);
  }

  Lie lie_ = Lie::ANYHOW;
};

}  // namespace kernelpack::checks
