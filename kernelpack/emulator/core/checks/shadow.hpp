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
  int32_t latest;
  Field<int32_t> steps;

  int agent() const { return key < 0 ? ~key : key; }
  bool is_atomic() const { return key < 0; }
};

class Reads {
 public:
  explicit Reads(size_t cells) : cells_(cells) {}

  void note(const uint32_t* cells, size_t count, int key, int32_t step) {
    Reader& reader = of(key);
    reader.latest = step;
    reader.steps.set(cells, count, extent_of(cells, count), step);
  }
  const std::vector<Reader>& readers() const { return readers_; }

 private:
  Reader& of(int key) {
    if (last_ < readers_.size() && readers_[last_].key == key) return readers_[last_];
    for (last_ = 0; last_ < readers_.size(); ++last_)
      if (readers_[last_].key == key) return readers_[last_];
    readers_.push_back({key, 0, Field<int32_t>(cells_)});
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
  void read(const Access& event, int32_t step, std::vector<uint32_t>& room);
};

}  // namespace kernelpack::checks
