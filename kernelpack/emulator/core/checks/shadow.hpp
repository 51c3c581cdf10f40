// What was last done to each cell of one memory, and by whom (checks/shadow.py, checks/reads.py).
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "../events.hpp"
#include "accesses.hpp"
#include "field.hpp"
#include "shapes.hpp"

namespace kernelpack::checks {

// Of one reader: the step of its last read of each cell, and of any. Reads that synchronise stand
// apart: their key is the complement of the agent. Most are never asked for, so those of a shape
// are only remembered until one is.
class Reader {
public:
  const int key;

  Reader(int whose, size_t cells) : key(whose), steps_(cells), blocks_(cells / BLOCK + 1) {}

  int agent() const { return key < 0 ? ~key : key; }
  bool is_atomic() const { return key < 0; }

  void note(const Cells& cells, int32_t step) {
    latest_ = step;
    cells.each_block([&](uint32_t block) { blocks_[block] = step; });
    if (cells.shape)
      remember(cells.shape, step);
    else
      steps_.set(cells, step);
  }

  // Whether it read one of these behind a step.
  bool is_late(const Cells& cells, int32_t known) {
    if (!may_be_late(cells, known)) return false;
    write_down(cells.extent, known);
    return cells.any_above(steps_.get(), known);
  }

private:
  struct Pending {
    Shared<Shape> shape;
    int32_t step;
  };
  static constexpr size_t MOST_PENDING = 64;

  bool may_be_late(const Cells& cells, int32_t known) const {
    if (latest_ <= known) return false;
    bool found = false;
    cells.each_block([&](uint32_t block) { found |= blocks_[block] > known; });
    return found;
  }

  void remember(Shape* shape, int32_t step) {
    for (Pending& one : pending_)
      if (&*one.shape == shape) {
        one.step = step;
        return;
      }
    if (pending_.size() == MOST_PENDING) write_down({0, UINT32_MAX}, 0);
    pending_.push_back({Shared<Shape>(shape), step});
  }
  // What is remembered of reads behind a step, of some cells.
  void write_down(const Extent& where, int32_t known) {
    const auto wanted = [&](const Pending& one) {
      if (one.step <= known || !one.shape->cells.extent.meets(where)) return false;
      steps_.raise(one.shape->cells, one.step);
      return true;
    };
    pending_.erase(std::remove_if(pending_.begin(), pending_.end(), wanted), pending_.end());
  }

  int32_t latest_ = 0;
  Field<int32_t> steps_;
  std::vector<int32_t> blocks_;  // by block of cells: no read of one of these is later
  std::vector<Pending> pending_;
};

class Reads {
public:
  explicit Reads(size_t cells) : cells_(cells) {}

  void note(const Cells& cells, int key, int32_t step) { of(key).note(cells, step); }
  std::deque<Reader>& readers() { return readers_; }

private:
  Reader& of(int key) {
    if (last_ && last_->key == key) return *last_;
    for (Reader& reader : readers_)
      if (reader.key == key) return *(last_ = &reader);
    return *(last_ = &readers_.emplace_back(key, cells_));
  }

  size_t cells_;
  Reader* last_ = nullptr;
  std::deque<Reader> readers_;
};

struct Shadow {
  Kind kind;
  size_t cells;
  Field<uint32_t> numbers;  // of the last write of each cell
  Field<uint32_t> parts;    // by byte, where that one is partial; else without meaning
  Reads reads;
  std::unique_ptr<Reads> byte_reads;  // of parts of cells, by byte

  explicit Shadow(const Unit& unit)
      : kind(unit.kind), cells(unit.cells), numbers(unit.cells), reads(unit.cells) {}

  void wrote_part(const Access& event, uint32_t number, Accesses& writes);
};

}  // namespace kernelpack::checks
