// Who knows what of whom (checks/clocks.py): clocks in three rows, of shared parts.
//
// The agents of a CTA have slots next to each other, 32 in a part. A clock names only the parts
// that it knows something of, mostly the one of its own CTA, and copies of a clock share them until
// one of them changes. Steps are of 32 bits: AVX2 has a maximum of these, of 64 bits it has none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "../doubt.hpp"

namespace kernelpack::checks {

constexpr int SCOPED = 0, CAUSAL = 1, EXECUTED = 2, ROWS = 3;
constexpr int SLOTS = 32;  // of a part

// A pointer that counts, of one thread alone: T has `int refs = 0`.
template <typename T>
class Shared {
public:
  Shared() = default;
  explicit Shared(T* made) : at_(made) { hold(); }
  Shared(const Shared& o) : at_(o.at_) { hold(); }
  Shared(Shared&& o) noexcept : at_(std::exchange(o.at_, nullptr)) {}
  Shared& operator=(Shared o) noexcept {
    std::swap(at_, o.at_);
    return *this;
  }
  ~Shared() {
    if (at_ && --at_->refs == 0) delete at_;
  }
  T* operator->() const { return at_; }
  T& operator*() const { return *at_; }
  explicit operator bool() const { return at_ != nullptr; }
  bool operator==(const Shared& o) const { return at_ == o.at_; }
  bool is_alone() const { return at_->refs == 1; }

private:
  void hold() {
    if (at_) ++at_->refs;
  }
  T* at_ = nullptr;
};

struct Part {
  int refs = 0;
  int32_t steps[ROWS][SLOTS];

  // Parts come and go with every release, so those that went are kept for the next ones.
  static void* operator new(size_t size) {
    auto& spare = spares().parts;
    if (spare.empty()) return ::operator new(size);
    void* part = spare.back();
    spare.pop_back();
    return part;
  }
  static void operator delete(void* part) { spares().parts.push_back(part); }

  Part() { std::memset(steps, 0, sizeof steps); }
  Part(const Part& o) { std::memcpy(steps, o.steps, sizeof steps); }

  void join(const Part& o, int first) {
    int32_t* mine = steps[first];
    const int32_t* theirs = o.steps[first];
    for (int i = 0; i < (ROWS - first) * SLOTS; ++i) mine[i] = std::max(mine[i], theirs[i]);
  }
  // Whether a row of the other one says nothing new.
  bool covers(const Part& o, int row) const {
    int more = 0;
    for (int i = 0; i < SLOTS; ++i) more |= o.steps[row][i] > steps[row][i];
    return !more;
  }

private:
  struct Spares {
    std::vector<void*> parts;
    ~Spares() {
      for (void* part : parts) ::operator delete(part);
    }
  };
  static Spares& spares() {
    static thread_local Spares one;
    return one;
  }
};

// An agent's place in every clock; part -1 is that of nobody.
struct Slot {
  int32_t part = -1;
  int32_t at = 0;
};

class Clock {
public:
  int32_t step(Slot slot, int row) const {
    const Part* part = find(slot.part);
    return part ? part->steps[row][slot.at] : 0;
  }

  // All rows at one slot.
  void set(Slot slot, int32_t step) {
    Part& part = own(slot.part);
    for (auto& row : part.steps) row[slot.at] = step;
  }
  void raise(Slot slot, int32_t step) {
    Part& part = own(slot.part);
    for (auto& row : part.steps) row[slot.at] = std::max(row[slot.at], step);
  }

  // The later of both, entry by entry, in the rows from `first` on.
  void learn(const Clock& o, int first = 0) {
    if (parts_.empty() && first == 0) {
      parts_ = o.parts_;
      return;
    }
    size_t i = 0;
    for (const Entry& theirs : o.parts_) {
      while (i < parts_.size() && parts_[i].number < theirs.number) ++i;
      if (i == parts_.size() || parts_[i].number != theirs.number)
        parts_.insert(parts_.begin() + static_cast<long>(i),
                      {theirs.number, rows_of(theirs.part, first)});
      else if (!(parts_[i].part == theirs.part))
        unshared(parts_[i].part).join(*theirs.part, first);
      ++i;
    }
  }

  // Whether another one's row says nothing new.
  bool covers(const Clock& o, int row) const {
    for (const Entry& theirs : o.parts_) {
      const Part* mine = find(theirs.number);
      if (mine == &*theirs.part) continue;
      if (!(mine ? mine : &nothing())->covers(*theirs.part, row)) return false;
    }
    return true;
  }

  // The rows before `row` are forgotten.
  void forget_before(int row) {
    for (Entry& entry : parts_)
      std::memset(unshared(entry.part).steps, 0, sizeof(int32_t) * SLOTS * row);
  }

  // What a fence ordered, of which the causal row alone counts: by the model, too.
  Clock fenced_only() const {
    Clock told = *this;
    for (Entry& entry : told.parts_) {
      Part& part = unshared(entry.part);
      std::memcpy(part.steps[SCOPED], part.steps[CAUSAL], sizeof part.steps[0]);
      std::memset(part.steps[EXECUTED], 0, sizeof part.steps[0]);
    }
    return told;
  }

private:
  struct Entry {
    int32_t number;
    Shared<Part> part;
  };

  static const Part& nothing() {
    static const Part none;
    return none;
  }
  static Part& unshared(Shared<Part>& part) {
    if (!part.is_alone()) part = Shared<Part>(new Part(*part));
    return *part;
  }
  static Shared<Part> rows_of(const Shared<Part>& part, int first) {
    if (first == 0) return part;
    Shared<Part> rows(new Part);
    rows->join(*part, first);
    return rows;
  }

  const Part* find(int32_t number) const {
    if (parts_.size() > 8) return find_among_many(number);
    for (const Entry& entry : parts_)
      if (entry.number == number) return &*entry.part;
    return nullptr;
  }
  const Part* find_among_many(int32_t number) const {
    const auto found = place(number);
    return found == parts_.end() || found->number != number ? nullptr : &*found->part;
  }
  std::vector<Entry>::const_iterator place(int32_t number) const {
    return std::lower_bound(
        parts_.begin(), parts_.end(), number,
        [](const Entry& entry, int32_t wanted) { return entry.number < wanted; });
  }

  // A part that is nobody else's.
  Part& own(int32_t number) {
    const auto found = place(number);
    const auto at = parts_.begin() + (found - parts_.cbegin());
    if (found == parts_.cend() || found->number != number)
      return *parts_.insert(at, {number, Shared<Part>(new Part)})->part;
    return unshared(at->part);
  }

  std::vector<Entry> parts_;  // by number
};

}  // namespace kernelpack::checks
