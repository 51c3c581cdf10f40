// Cells that are accessed again and again, as the stages of a ring are: looked at once.
#pragma once

#include <vector>

#include "../events.hpp"
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
  // Many cells that have a number, as they are remembered; others are as quickly looked at anew.
  Cells of(const Access& event) {
    if (!event.layout || event.count < MANY) return {event.cells, event.count};
    Kept& kept = kept_[static_cast<size_t>(event.layout) % kept_.size()];
    if (kept.layout != event.layout)
      kept = {event.layout, Shared<Shape>(new Shape(event.cells, event.count))};
    return kept.shape->cells;
  }

private:
  static constexpr size_t MANY = 96, MOST = 512;

  struct Kept {
    int64_t layout = 0;
    Shared<Shape> shape;
  };
  std::vector<Kept> kept_{MOST};
};

}  // namespace kernelpack::checks
