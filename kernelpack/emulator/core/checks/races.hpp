// Accesses that nothing orders (checks/races.py): each is checked against what happened to its
// cells.
#pragma once

#include <memory>
#include <vector>

#include "clocks.hpp"
#include "readers.hpp"
#include "shadow.hpp"

namespace kernelpack::checks {

class Races {
public:
  explicit Races(const Clocks& clocks) : clocks_(clocks) {}

  void on_issued(int64_t operation) { issued_at_.add(operation, writes_.latest()); }
  void on_began(int64_t operation) { running_.push_back(issued_at_.at(operation)); }
  void on_ended(int64_t operation) {
    running_.pop_back();
    issued_at_.end(operation);
  }
  void on_access(const Access&);
  void on_swizzled(const Swizzled&);
  void on_exited(const std::vector<const Unit*>& units);

private:
  // An access, and what is asked of each write before it.
  struct Asked {
    const Access& event;
    const Cells& cells;
    const Agent& mine;
    int row, row_of_scopes;
    int fence;  // the kind of fence that counts, -1 for none
  };

  Shadow& shadow_of(const Unit&);
  bool are_known(const Asked&, const Shadow&);
  bool is_known(const Asked&, uint32_t number) const;
  void after_writes(const Asked&, Shadow&);
  void find_parts(const Asked&, const Shadow&);
  void after_reads(const Asked&, Reads&, const Cells&) const;
  void after_readers(const Asked&, const Readers&, const Cells&) const;
  void after_last_readers(const Asked&, const uint32_t* numbers, const Cells&) const;
  void write(const Asked&, Shadow&);
  void read(const Asked&, Shadow&);
  Cells bytes_of(const Access&);

  // What the last writes were that the latest access met: how any was made, the patterns of boxes.
  struct Met {
    const Unit* unit = nullptr;
    const uint32_t* cells = nullptr;
    size_t count = 0;
    bool is_write = false;
    uint8_t how = 0;
    uint32_t boxes = 0;
    void add(const Done& done) {
      how |= done.how;
      boxes |= 1u << done.box;
    }
  };

  const Clocks& clocks_;
  Met met_;
  Shapes shapes_;
  std::vector<std::unique_ptr<Shadow>> shadows_;  // by the unit's id
  Accesses writes_, reads_;
  Readers readers_, byte_readers_;  // of global memory, by cell and by byte
  Flights<uint32_t> issued_at_;
  std::vector<uint32_t> running_;  // when each operation that takes effect now was issued
  std::vector<uint32_t> room_, bytes_;
};

}  // namespace kernelpack::checks
