// The real numbers of a call, such as an epsilon: floats of 64 bits, rounded once, to nearest even,
// to the type of the parameter that takes them. Bits are looked at, not values, so that a program
// compiled with -ffast-math refuses a NaN too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "format.hpp"
#include "variant.hpp"

namespace kernelpack {

/// The numbers of a call, by name: `{{"eps", 1e-6}}`.
using Numbers = std::vector<std::pair<std::string_view, double>>;

namespace detail {

constexpr std::uint64_t kInfinityBits = 0x7ff0000000000000, kSignBit = std::uint64_t{1} << 63;

inline std::uint64_t bits_of(double value) { return read_as<std::uint64_t>(&value); }
inline bool is_nan(double value) { return (bits_of(value) & ~kSignBit) > kInfinityBits; }
inline bool is_infinite(double value) { return (bits_of(value) & ~kSignBit) == kInfinityBits; }

/// The fields of a type: bits of its exponent and of its mantissa.
struct RealLayout {
  int exponent, mantissa;

  std::uint64_t sign() const { return std::uint64_t{1} << (exponent + mantissa); }
  std::uint64_t infinity() const { return ((std::uint64_t{1} << exponent) - 1) << mantissa; }
};

/// The layout of a type that numbers are taken in; none of another type.
inline std::optional<RealLayout> real_layout(DType dtype) {
  switch (dtype) {
    case DType::kFp16: return RealLayout{5, 10};
    case DType::kBf16: return RealLayout{8, 7};
    case DType::kFp32: return RealLayout{8, 23};
    case DType::kFp64: return RealLayout{11, 52};
    default: return std::nullopt;
  }
}

/// The bits of a number in a type; those of infinity where it is too large.
///
/// A code counts steps from 0: rounding up past a power of two carries into the exponent.
inline std::uint64_t code_of(double value, RealLayout layout) {
  const std::uint64_t sign = bits_of(value) & kSignBit ? layout.sign() : 0;
  if (is_infinite(value)) return sign | layout.infinity();
  const double magnitude = std::fabs(value);
  const int smallest = 2 - (1 << (layout.exponent - 1));  // exponent of the smallest normal number
  int exponent = smallest;
  if (bits_of(magnitude)) exponent = std::max(smallest, std::ilogb(magnitude));
  const double scaled = std::ldexp(magnitude, layout.mantissa - exponent);
  auto steps = static_cast<std::uint64_t>(scaled);
  const double rest = scaled - static_cast<double>(steps);
  steps += rest > 0.5 || (rest == 0.5 && steps % 2);
  const auto binades = static_cast<std::uint64_t>(exponent - smallest);
  return sign | std::min((binades << layout.mantissa) + steps, layout.infinity());
}

}  // namespace detail
}  // namespace kernelpack
