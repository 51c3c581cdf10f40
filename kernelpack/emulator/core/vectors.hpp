// Doubles and their bits, as many at once as the processor takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace kernelpack {

#ifdef __AVX512F__
constexpr int VECTOR = 8, BLOCK_ROWS = 8, BLOCK_VECTORS = 3;
#else
constexpr int VECTOR = 4, BLOCK_ROWS = 4, BLOCK_VECTORS = 3;
#endif
typedef double Vector __attribute__((vector_size(8 * VECTOR), aligned(8)));
// Signed, as many processors compare no others; a number's bits without its sign are never below 0.
typedef int64_t Bits __attribute__((vector_size(8 * VECTOR), aligned(8)));

constexpr int64_t MAGNITUDE = INT64_MAX, INFINITE_BITS = 0x7ffll << 52;

inline Bits bits_from(const double* values) {
  Bits bits;
  std::memcpy(&bits, values, sizeof bits);
  return bits;
}
// The last values, of which there are fewer than a vector; the others are zeros.
inline Bits bits_from(const double* values, size_t count) {
  Bits bits = {};
  std::memcpy(&bits, values, count * sizeof *values);
  return bits;
}

// Calls `look` with the bits of all values, a vector at a time; zeros follow the last.
template <typename Look>
inline void each_bits(const double* values, size_t count, Look look) {
  size_t i = 0;
  for (; i + VECTOR <= count; i += VECTOR) look(bits_from(values + i));
  if (i < count) look(bits_from(values + i, count - i));
}

inline Bits least_of(Bits a, Bits b) { return a < b ? a : b; }
inline Bits most_of(Bits a, Bits b) { return a > b ? a : b; }
inline int64_t least_of(Bits all) {
  int64_t found = all[0];
  for (int i = 1; i < VECTOR; ++i) found = std::min<int64_t>(found, all[i]);
  return found;
}
inline int64_t most_of(Bits all) {
  int64_t found = all[0];
  for (int i = 1; i < VECTOR; ++i) found = std::max<int64_t>(found, all[i]);
  return found;
}

}  // namespace kernelpack
