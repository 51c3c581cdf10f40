// What was last done to each cell of one memory, and by whom (checks/shadow.py, checks/reads.py).
#pragma once

#include <memory>
#include <vector>

#include "../events.hpp"
#include "accesses.hpp"
#include "field.hpp"

namespace kernelpack::checks {

// Of one reader: the step of its last read of each cell, and of any. Reads that synchronise stand
// apart: their key is the complement of the agent.
struct Reader {
  int key;
  int32_t latest = 0;
  Field<int32_t> steps;
  std::vector<int32_t> blocks;  // by block of cells: no read of one of these is later

  Reader(int whose, size_t cells) : key(whose), steps(cells), blocks(cells / BLOCK + 1) {}

  void note(const Cells& cells, int32_t step) {
    latest = step;
    steps.set(cells, step);
    cells.each_block([&](uint32_t block) { blocks[block] = step; });
  }
  // Whether it may have read one of these behind a step, as far as can be told quickly.
  bool may_be_late(const Extent& where, int32_t known) const {
    if (latest <= known) return false;
    for (uint32_t block = block_of(where.low); block <= block_of(where.high); ++block)
      if (blocks[block] > known) return true;
    return false;
  }

  int agent() const { return key < 0 ? ~key : key; }
  bool is_atomic() const { return key < 0; }
};

class Reads {
public:
  explicit Reads(size_t cells) : cells_(cells) {}

  void note(const Cells& cells, int key, int32_t step) { of(key).note(cells, step); }
  const std::vector<Reader>& readers() const { return readers_; }

private:
  Reader& of(int key) {
    if (last_ < readers_.size() && readers_[last_].key == key) return readers_[last_];
    for (last_ = 0; last_ < readers_.size(); ++last_)
      if (readers_[last_].key == key) return readers_[last_];
    readers_.emplace_back(key, cells_);
    return readers_.back();
  }

  size_t cells_;
  size_t last_ = 0;
  std::vector<Reader> readers_;
};

constexpr uint8_t NO_BOX = 0;

struct Shadow {
  Kind kind;
  size_t cells;
  Field<uint32_t> numbers;  // of the last write of each cell
  Field<uint32_t> parts;    // by byte, where that one is partial; else without meaning
  Reads reads;
  std::unique_ptr<Reads> byte_reads;  // of parts of cells, by byte
  Field<uint8_t> boxes;               // the pattern by which each cell was last written

  explicit Shadow(const Unit& unit)
      : kind(unit.kind), cells(unit.cells), numbers(unit.cells), reads(unit.cells) {}

  void wrote_part(const Access& event, uint32_t number, Accesses& writes);
};

}  // namespace kernelpack::checks
