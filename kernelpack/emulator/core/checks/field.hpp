// A number for each cell of a memory, all zero at first: room that is given by pages as it is used.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "../doubt.hpp"

namespace kernelpack::checks {

// Which cells an array was written in, so that only these need be cleared.
struct Extent {
  uint32_t low = UINT32_MAX, high = 0;
  bool empty() const { return low > high; }
  void add(uint32_t first, uint32_t last) {
    if (first < low) low = first;
    if (last > high) high = last;
  }
  bool meets(const Extent& o) const { return low <= o.high && o.low <= high; }
};

inline Extent extent_of(const uint32_t* cells, size_t count) {
  uint32_t low = UINT32_MAX, high = 0;
  for (size_t i = 0; i < count; ++i) {
    low = cells[i] < low ? cells[i] : low;
    high = cells[i] > high ? cells[i] : high;
  }
  return {low, high};
}

template <typename T>
class Field {
 public:
  Field() = default;
  explicit Field(size_t cells) : bytes_(cells * sizeof(T)) {
    auto& spare = spares()[bytes_];
    if (!spare.empty()) {
      at_ = spare.back();
      spare.pop_back();
      return;
    }
    void* room = mmap(nullptr, bytes_ ? bytes_ : 1, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) doubt("no room for what the checks remember");
    at_ = static_cast<T*>(room);
  }
  Field(Field&& o) noexcept
      : at_(std::exchange(o.at_, nullptr)), bytes_(o.bytes_), used_(o.used_) {}
  Field& operator=(Field&& o) noexcept {
    std::swap(at_, o.at_);
    std::swap(bytes_, o.bytes_);
    std::swap(used_, o.used_);
    return *this;
  }
  ~Field() {
    if (!at_) return;
    if (bytes_ > MOST_KEPT) {
      munmap(at_, bytes_);
      return;
    }
    clear();
    spares()[bytes_].push_back(at_);
  }

  explicit operator bool() const { return at_ != nullptr; }
  const T* get() const { return at_; }
  const Extent& used() const { return used_; }

  void set(const uint32_t* cells, size_t count, const Extent& where, T value) {
    used_.add(where.low, where.high);
    for (size_t i = 0; i < count; ++i) at_[cells[i]] = value;
  }
  void set(uint32_t cell, T value) {
    used_.add(cell, cell);
    at_[cell] = value;
  }

  void clear() {
    if (!used_.empty()) std::fill(at_ + used_.low, at_ + used_.high + 1, T{});
    used_ = {};
  }

 private:
  static constexpr size_t MOST_KEPT = size_t{1} << 20;  // bytes of one that serves again

  static std::map<size_t, std::vector<T*>>& spares() {
    static thread_local std::map<size_t, std::vector<T*>> all;
    return all;
  }

  T* at_ = nullptr;
  size_t bytes_ = 0;
  Extent used_;
};

}  // namespace kernelpack::checks
