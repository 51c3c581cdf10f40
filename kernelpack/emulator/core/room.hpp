// Bytes that serve one run after the other: pages that are new to a process take longer than to
// fill them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace kernelpack {

// What is let go of, by sizes, which are powers of two; each thread has its own.
class Spares {
public:
  static Spares& here() {
    static thread_local Spares kept;
    return kept;
  }
  ~Spares() {
    for (auto& rooms : all_)
      for (void* room : rooms) std::free(room);
  }

  void* take(int power) {
    auto& rooms = all_[power];
    if (rooms.empty()) {
      void* made = std::aligned_alloc(ALIGNMENT, size_t{1} << power);
      if (!made) throw std::bad_alloc();
      return made;
    }
    void* room = rooms.back();
    rooms.pop_back();
    bytes_ -= size_t{1} << power;
    return room;
  }
  void keep(void* room, int power) {
    if (bytes_ + (size_t{1} << power) > MOST_BYTES) {
      std::free(room);
      return;
    }
    all_[power].push_back(room);
    bytes_ += size_t{1} << power;
  }

private:
  static constexpr size_t ALIGNMENT = 64, MOST_BYTES = size_t{256} << 20;
  std::vector<void*> all_[64];
  size_t bytes_ = 0;
};

class Room {
public:
  Room() = default;
  Room(Room&& o) noexcept : at_(std::exchange(o.at_, nullptr)), power_(o.power_) {}
  Room& operator=(Room&& o) noexcept {
    std::swap(at_, o.at_);
    std::swap(power_, o.power_);
    return *this;
  }
  ~Room() { drop(); }

  // So many bytes at least, with anything in them; a cache line begins where they do.
  uint8_t* make(size_t bytes) {
    drop();
    power_ = LEAST;
    while ((size_t{1} << power_) < bytes) ++power_;
    at_ = static_cast<uint8_t*>(Spares::here().take(power_));
    return at_;
  }
  uint8_t* data() { return at_; }
  const uint8_t* data() const { return at_; }

private:
  static constexpr int LEAST = 6;

  void drop() {
    if (at_) Spares::here().keep(at_, power_);
    at_ = nullptr;
  }

  uint8_t* at_ = nullptr;
  int power_ = 0;
};

}  // namespace kernelpack
