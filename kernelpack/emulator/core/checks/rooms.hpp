// Zeroed room for fields: what one run leaves is cleared where it was touched, and serves the next.
// Pages are given as they are used, so that a field may be as large as a device's memory.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <vector>

#include "../doubt.hpp"

namespace kernelpack::checks {

class Rooms {
public:
  static void* take(size_t bytes) {
    auto& spare = spares(bytes);
    if (!spare.empty()) {
      void* room = spare.back();
      spare.pop_back();
      return room;
    }
    void* room = mmap(nullptr, rounded(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) doubt("no room for what the checks remember");
    return room;
  }
  // All of it is zero.
  static void keep(void* room, size_t bytes) { spares(bytes).push_back(room); }
  static void drop(void* room, size_t bytes) { munmap(room, rounded(bytes)); }

private:
  static constexpr int LEAST = 12, SIZES = 48;  // powers of two

  static int power(size_t bytes) {
    int power = LEAST;
    while ((size_t{1} << power) < bytes) ++power;
    return power;
  }
  static size_t rounded(size_t bytes) { return size_t{1} << power(bytes); }
  static std::vector<void*>& spares(size_t bytes) {
    static thread_local std::vector<void*> all[SIZES];
    if (bytes >> (SIZES - 1)) doubt("a memory larger than the checks know");
    return all[power(bytes)];
  }
};

}  // namespace kernelpack::checks
