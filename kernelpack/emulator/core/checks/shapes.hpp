// Cells that are accessed again and again, as the stages of a ring are: looked at once.
#pragma once

#include <cstring>
#include <vector>

#include "cells.hpp"
#include "clock.hpp"

namespace kernelpack::checks {

struct Shape {
  int refs = 0;
  std::vector<uint32_t> copy;
  Cells cells;

  Shape(const uint32_t* at, size_t count) : copy(at, at + count), cells(copy.data(), count) {
    cells.shape = this;
    cells.each_block([this](uint32_t block) {
      if (blocks_.empty() || blocks_.back() != block) blocks_.push_back(block);
    });
    std::sort(blocks_.begin(), blocks_.end());
    blocks_.erase(std::unique(blocks_.begin(), blocks_.end()), blocks_.end());
    cells.blocks = &blocks_;
  }
  Shape(const Shape&) = delete;

private:
  std::vector<uint32_t> blocks_;
};

class Shapes {
public:
  // Many cells, as they are remembered; few are as quickly looked at anew.
  Cells of(const uint32_t* at, size_t count) {
    if (count < MANY) return {at, count};
    Shared<Shape>& found = kept_[place(at, count)];
    if (!found || found->copy.size() != count ||
        std::memcmp(found->copy.data(), at, count * sizeof *at) != 0)
      found = Shared<Shape>(new Shape(at, count));
    return found->cells;
  }

private:
  static constexpr size_t MANY = 96, KEPT = 512;

  static size_t place(const uint32_t* at, size_t count) {
    uint64_t hash = count * 0x9e3779b97f4a7c15ull;
    for (const size_t i : {size_t{0}, count / 2, count - 1})
      hash = (hash ^ at[i]) * 0xff51afd7ed558ccdull;
    return hash >> 32 & (KEPT - 1);
  }

  std::vector<Shared<Shape>> kept_{KEPT};
};

}  // namespace kernelpack::checks
