// The bank swizzles of shared memory: which byte goes where (models/swizzle.py, PTX ISA 5.5.7).
#pragma once

#include <cstdint>

namespace kernelpack {

// The numbers of spec/tensormap.Swizzle; `Swizzled.pattern` is one of them.
enum class Swizzle : uint8_t { NONE, B32, B64, B128, B128_ATOM32, B128_ATOM32_FLIP8, B128_ATOM64 };

// `address ^= (address >> shift) & mask`, repeating every `period` bytes; `span` is the width of
// one row of the pattern, `atom` bytes stay together, `flip_8` exchanges the halves of 16 bytes in
// every other 128-byte line.
struct Pattern {
  uint32_t shift, mask, span, atom, period;
  bool flip_8;
};

inline const Pattern& pattern_of(Swizzle swizzle) {
  static constexpr Pattern PATTERNS[] = {
      {0, 0x00, 16, 16, 16, false},   {3, 0x10, 32, 16, 256, false},
      {3, 0x30, 64, 16, 512, false},  {3, 0x70, 128, 16, 1024, false},
      {2, 0x60, 128, 32, 512, false}, {2, 0x60, 128, 32, 512, true},
      {1, 0x40, 128, 64, 256, false},
  };
  return PATTERNS[static_cast<int>(swizzle)];
}

// A shared byte address as the swizzle permutes it; `start` moves the pattern.
inline uint32_t swizzled(const Pattern& pattern, uint32_t address, uint32_t start = 0) {
  const uint32_t relative = address - start;
  const uint32_t moved = address ^ ((relative >> pattern.shift) & pattern.mask);
  return pattern.flip_8 ? moved ^ ((relative >> 4) & 8) : moved;
}

}  // namespace kernelpack
