// A number for each cell of a memory, all zero at first: room that is given by pages as it is used.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "../doubt.hpp"
#include "cells.hpp"

namespace kernelpack::checks {

constexpr int BLOCK_SHIFT = 9;
constexpr size_t BLOCK = size_t{1} << BLOCK_SHIFT;  // cells that are looked at together
inline uint32_t block_of(uint32_t cell) { return cell >> BLOCK_SHIFT; }

template <typename T>
class Field {
public:
  Field() = default;
  explicit Field(size_t cells) : bytes_(cells * sizeof(T)) {
    if (bytes_ <= MOST_KEPT) touched_.resize((cells >> BLOCK_SHIFT) + 1);
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
      : at_(std::exchange(o.at_, nullptr)),
        bytes_(o.bytes_),
        used_(o.used_),
        touched_(std::move(o.touched_)) {}
  Field& operator=(Field&& o) noexcept {
    std::swap(at_, o.at_);
    std::swap(bytes_, o.bytes_);
    std::swap(used_, o.used_);
    std::swap(touched_, o.touched_);
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

  void set(const Cells& cells, T value) {
    touch(cells.extent);
    cells.set(at_, value);
  }
  void set(uint32_t cell, T value) {
    touch({cell, cell});
    at_[cell] = value;
  }

private:
  static constexpr size_t MOST_KEPT = size_t{1} << 20;  // bytes of one that serves again

  void touch(const Extent& where) {
    used_.add(where);
    if (touched_.empty()) return;
    for (uint32_t block = block_of(where.low); block <= block_of(where.high); ++block)
      touched_[block] = 1;
  }
  void clear() {
    const size_t cells = bytes_ / sizeof(T);
    for (size_t block = 0; block < touched_.size(); ++block) {
      const size_t first = block << BLOCK_SHIFT;
      if (touched_[block]) std::memset(at_ + first, 0, sizeof(T) * std::min(BLOCK, cells - first));
    }
  }

  static std::map<size_t, std::vector<T*>>& spares() {
    static thread_local std::map<size_t, std::vector<T*>> all;
    return all;
  }

  T* at_ = nullptr;
  size_t bytes_ = 0;
  Extent used_;
  std::vector<uint8_t> touched_;  // by block: whether anything was written there
};

}  // namespace kernelpack::checks
