// Bytes with a state each (machine/memory.py). Accesses that the Python memory would remark on are
// doubts: outside an allocation, misaligned, or a read of what was never written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "doubt.hpp"
#include "room.hpp"

namespace kernelpack {

constexpr uint8_t OUTSIDE = 0, FRESH = 1, WRITTEN = 3, POISON = 0xff;

enum class Kind : uint8_t { SHARED, GLOBAL, TENSOR, PAIR_USE, PAIR_ALLOC, LOCAL, PARAM };

// A memory as the checks know it. `id` is its own in a run; `cta` the number of the CTA it is of.
struct Unit {
  int id = -1;
  Kind kind = Kind::GLOBAL;
  uint32_t cells = 0;
  int cta = -1;
};

// Whether all of some bytes were written: long runs by 32 bytes at once, which the compiler makes
// one comparison of.
inline bool all_written(const uint8_t* at, uint64_t count) {
  constexpr uint64_t EIGHT = 0x0303030303030303ull;
  uint64_t wrong = 0;
  for (; count >= 32; count -= 32, at += 32) {
    uint64_t words[4];
    std::memcpy(words, at, 32);
    for (const uint64_t word : words) wrong |= word ^ EIGHT;
  }
  for (; count >= 8; count -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    wrong |= word ^ EIGHT;
  }
  for (; count; --count) wrong |= *at++ ^ WRITTEN;
  return wrong == 0;
}

// Pages of a memory all of whose bytes are written, which they stay: looked at once, as a whole.
class Pages {
public:
  void begin(uint64_t size) { seen_.assign(size / PAGE + 1, UNKNOWN); }

  // Whether these bytes lie in one page that is written; if not, they may be nevertheless.
  bool are_written(const uint8_t* state, uint64_t size, uint64_t offset, uint64_t count) {
    const uint64_t page = offset / PAGE, start = page * PAGE;
    if (offset + count > start + PAGE) return false;
    uint8_t& seen = seen_[page];
    if (seen == UNKNOWN)
      seen = all_written(state + start, std::min(PAGE, size - start)) ? WHOLE : PARTIAL;
    return seen == WHOLE;
  }

private:
  static constexpr uint64_t PAGE = 4096;
  enum Seen : uint8_t { UNKNOWN, WHOLE, PARTIAL };  // that of a partial one stays, too
  std::vector<uint8_t> seen_;
};

// What pages of a memory held before they were first written to, so that a run can be undone.
class Journal {
public:
  void begin(uint64_t size) { seen_.assign(size / PAGE + 1, false); }

  void note(const uint8_t* bytes, const uint8_t* state, uint64_t size, uint64_t offset,
            uint64_t count) {
    for (uint64_t page = offset / PAGE; page <= (offset + count - 1) / PAGE; ++page) {
      if (seen_[page]) continue;
      seen_[page] = true;
      const uint64_t start = page * PAGE, length = size - start < PAGE ? size - start : PAGE;
      Kept kept{
          start, {bytes + start, bytes + start + length}, {state + start, state + start + length}};
      pages_.push_back(std::move(kept));
    }
  }

  void undo(uint8_t* bytes, uint8_t* state) const {
    for (const Kept& kept : pages_) {
      std::memcpy(bytes + kept.start, kept.bytes.data(), kept.bytes.size());
      std::memcpy(state + kept.start, kept.state.data(), kept.state.size());
    }
  }

private:
  static constexpr uint64_t PAGE = 4096;
  struct Kept {
    uint64_t start;
    std::vector<uint8_t> bytes, state;
  };
  std::vector<bool> seen_;
  std::vector<Kept> pages_;
};

struct Memory {
  uint8_t* bytes = nullptr;
  uint8_t* state = nullptr;
  uint64_t size = 0;
  uint64_t base = 0;  // the address of byte 0, of global memory
  Unit unit;
  Journal* journal = nullptr;  // of global memory, which is the caller's
  Pages* pages = nullptr;      // the same

  // A memory of its own, all of it outside, with anything in it.
  void make(uint64_t wanted, Unit what) {
    size = (wanted + 15) / 16 * 16;
    bytes = own_.make(2 * size);
    state = bytes + size;
    std::memset(state, OUTSIDE, size);
    unit = what;
    unit.cells = static_cast<uint32_t>(size / 4);
  }

  void open(uint64_t start, uint64_t count) {
    std::memset(bytes + start, POISON, count);
    std::memset(state + start, FRESH, count);
  }

  void check(uint64_t offset, uint64_t count) const {
    if (offset > size || count > size - offset) doubt("an access outside a memory");
  }

  // Whether each of these bytes was written; whatever is not is a doubt.
  void check_read(uint64_t offset, uint64_t count) const {
    check(offset, count);
    if (pages && pages->are_written(state, size, offset, count)) return;
    if (!all_written(state + offset, count)) doubt("a read of bytes never written");
  }

  // Bytes that are about to be written must be inside; they count as written from now on.
  void check_write(uint64_t offset, uint64_t count) {
    check(offset, count);
    if (journal && count) journal->note(bytes, state, size, offset, count);
    uint8_t* at = state + offset;
    if (all_written(at, count)) return;
    for (uint64_t i = 0; i < count; ++i)
      if (at[i] == OUTSIDE) doubt("a write outside an allocation");
    std::memset(at, WRITTEN, count);
  }

private:
  Room own_;
};

}  // namespace kernelpack
