// Exact rounding of sums and products to f32, f16 and bf16 (semantics/rounding.py): a result is
// carried as two f64, the rounded sum and what the rounding lost.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "views.hpp"

namespace kernelpack {

enum class Rounding : uint8_t { NEAREST, ZERO, DOWN, UP };

inline Rounding rounding_of(const std::string& mode) {
  return mode == "rz"   ? Rounding::ZERO
         : mode == "rm" ? Rounding::DOWN
         : mode == "rp" ? Rounding::UP
                        : Rounding::NEAREST;
}

struct Exactly {
  double value, error;
};

// a + b; the error is 0 where the sum is not finite.
inline Exactly two_sum(double a, double b) {
  const double total = a + b, rest = total - a;
  const double error = (a - (total - rest)) + (b - rest);
  return {total, std::isfinite(total) ? error : 0.0};
}

// As an f64 whose last bit is set when it is not exact: rounding that once more, to a format at
// least two bits shorter, gives the correct result.
inline double to_odd(Exactly sum) {
  const auto bits = bits_as<int64_t>(sum.value);
  if (sum.error == 0 || std::isnan(sum.error) || bits & 1) return sum.value;
  return bits_as<double>(bits + ((sum.error > 0) == (sum.value > 0) ? 1 : -1));
}

inline float narrow(Exactly sum, Rounding mode) {
  if (mode == Rounding::NEAREST) return static_cast<float>(to_odd(sum));
  const auto near = static_cast<float>(sum.value);
  const double back = near;
  if (!std::isfinite(sum.value)) return near;
  const bool above = back > sum.value || (back == sum.value && sum.error < 0);
  const bool below = back < sum.value || (back == sum.value && sum.error > 0);
  const bool negative = std::signbit(sum.value);
  constexpr float INFINITE = std::numeric_limits<float>::infinity();
  const bool goes_down = mode == Rounding::DOWN || (mode == Rounding::ZERO && !negative);
  const bool goes_up = mode == Rounding::UP || (mode == Rounding::ZERO && negative);
  if (above && goes_down) return std::nextafterf(near, -INFINITE);
  if (below && goes_up) return std::nextafterf(near, INFINITE);
  return near;
}

// As an f32 rounded to odd, for one more rounding to 16 bits.
inline float to_odd_f32(Exactly sum) {
  const double exact = to_odd(sum);
  const float cut = narrow({exact, 0.0}, Rounding::ZERO);
  if (static_cast<double>(cut) == exact || !std::isfinite(exact)) return cut;
  return bits_as<float>(bits_as<uint32_t>(cut) | 1u);
}

}  // namespace kernelpack
