// A warp's registers as they were at some time (rest.cpp looks whether they are so again).
#pragma once

#include <cstdint>
#include <vector>

#include "program.hpp"
#include "room.hpp"

namespace kernelpack {

// A warp's registers as they were: what each held before it was first written to. Copies of all of
// them would take most of the time of a kernel that polls.
class KeptRegisters {
public:
  void begin(const Program& program, const Room& file);

  // A node is about to run, or a landing to fill a register.
  void note_node(int32_t node) {
    if (!is_on_ || node_rounds_[node] == round_) return;
    node_rounds_[node] = round_;
    save_all(node);
  }
  void note_register(int32_t index) {
    if (is_on_ && register_rounds_[index] != round_) save(index);
  }

  // They are kept as they are now.
  void keep();
  // Whether they are as they were kept.
  bool are() const;
  void forget() { is_on_ = false; }

private:
  struct Saved {
    uint32_t offset, bytes, at;  // `at`: in `values_`
  };

  void save_all(int32_t node);
  void save(int32_t index);

  const Program* program_ = nullptr;
  const Room* file_ = nullptr;
  bool is_on_ = false;
  // By node and by register: the round in which it ran, or was saved, last.
  std::vector<int32_t> node_rounds_, register_rounds_;
  int32_t round_ = 0;
  std::vector<Saved> saved_;
  std::vector<uint8_t> values_;
};

}  // namespace kernelpack
