// A number for each cell of a memory, all zero at first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "cells.hpp"
#include "rooms.hpp"

namespace kernelpack::checks {

template <typename T>
class Field {
public:
  Field() = default;
  explicit Field(size_t cells)
      : at_(static_cast<T*>(Rooms::take(cells * sizeof(T)))),
        cells_(cells),
        touched_(cells / BLOCK + 1) {}
  Field(Field&& o) noexcept
      : at_(std::exchange(o.at_, nullptr)),
        cells_(o.cells_),
        used_(o.used_),
        touched_(std::move(o.touched_)) {}
  Field& operator=(Field&& o) noexcept {
    std::swap(at_, o.at_);
    std::swap(cells_, o.cells_);
    std::swap(used_, o.used_);
    std::swap(touched_, o.touched_);
    return *this;
  }
  ~Field() {
    if (!at_) return;
    const size_t touched =
        BLOCK * sizeof(T) * static_cast<size_t>(std::count(touched_.begin(), touched_.end(), 1));
    if (touched > MOST_KEPT) {
      Rooms::drop(at_, cells_ * sizeof(T));
      return;
    }
    if (touched) clear();
    Rooms::keep(at_, cells_ * sizeof(T));
  }

  explicit operator bool() const { return at_ != nullptr; }
  const T* get() const { return at_; }
  const Extent& used() const { return used_; }

  // Whether none of these was ever set, as far as can be told quickly.
  bool is_blank(const Cells& cells) const {
    if (!used_.meets(cells.extent)) return true;
    bool touched = false;
    cells.each_block([&](uint32_t block) { touched |= touched_[block]; });
    return !touched;
  }

  void set(const Cells& cells, T value) {
    used_.add(cells.extent);
    cells.each_block([this](uint32_t block) { touched_[block] = 1; });
    cells.set(at_, value);
  }
  // The later of what is there and a value.
  void raise(const Cells& cells, T value) {
    used_.add(cells.extent);
    cells.each_block([this](uint32_t block) { touched_[block] = 1; });
    cells.raise(at_, value);
  }
  void set(uint32_t cell, T value) {
    used_.add({cell, cell});
    touched_[block_of(cell)] = 1;
    at_[cell] = value;
  }

private:
  static constexpr size_t MOST_KEPT = size_t{32} << 20;  // bytes that are worth clearing

  void clear() {
    for (size_t block = 0; block < touched_.size(); ++block) {
      const size_t first = block * BLOCK;
      if (touched_[block]) std::memset(at_ + first, 0, sizeof(T) * std::min(BLOCK, cells_ - first));
    }
  }

  T* at_ = nullptr;
  size_t cells_ = 0;
  Extent used_;
  std::vector<uint8_t> touched_;  // by block: whether anything was written there
};

}  // namespace kernelpack::checks
