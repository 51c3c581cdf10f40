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
  const bool is_exact = !(sum.error < 0 || sum.error > 0) || bits & 1;
  const int64_t step = (sum.error > 0) == (sum.value > 0) ? 1 : -1;
  return bits_as<double>(is_exact ? bits : bits + step);
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

// As an f32 rounded to odd, for one more rounding to 16 bits: cut, and its last bit set where that
// was not exact.
inline float to_odd_f32(Exactly sum) {
  const double exact = to_odd(sum);
  const auto near = static_cast<float>(exact);
  const auto bits = bits_as<uint32_t>(near);
  const uint32_t cut = bits - (std::fabs(static_cast<double>(near)) > std::fabs(exact));
  const bool is_kept =
      static_cast<double>(near) == exact || !(std::fabs(exact) <= 0x1.fffffffffffffp1023);
  return bits_as<float>(is_kept ? bits : cut | 1u);
}

}  // namespace kernelpack
