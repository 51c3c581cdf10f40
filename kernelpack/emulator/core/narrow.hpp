// The bits of float formats, with PTX's roundings (formats/narrow.py).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "views.hpp"

namespace kernelpack {

// The fields of a format, low to high: mantissa, exponent, sign. `shift` zero bits stand below.
// `beyond` is what is too large, `nan` what is no number.
struct Layout {
  int mantissa, bias;
  uint32_t largest, beyond, nan, sign;
  int shift;
  int smallest_exponent() const { return 1 - bias; }
};

constexpr Layout TF32{10, 127, 0x3fbff, 0x3fc00, 0x3ffff, 1u << 18, 13};
constexpr Layout FP16{10, 15, 0x7bff, 0x7c00, 0x7fff, 1u << 15, 0};
constexpr Layout BF16{7, 127, 0x7f7f, 0x7f80, 0x7fff, 1u << 15, 0};
constexpr Layout E4M3{3, 7, 0x7e, 0x7f, 0x7f, 1u << 7, 0};
constexpr Layout E5M2{2, 15, 0x7b, 0x7c, 0x7f, 1u << 7, 0};
constexpr Layout E2M3{3, 1, 0x1f, 0x1f, 0x1f, 1u << 5, 0};
constexpr Layout E3M2{2, 3, 0x1f, 0x1f, 0x1f, 1u << 5, 0};
constexpr Layout E2M1{1, 1, 0x7, 0x7, 0x7, 1u << 3, 0};

// Too large, infinite or no number: what stands in place of a magnitude's code.
inline uint32_t limited(const Layout& layout, uint32_t code, float value, bool satfinite) {
  const uint32_t magnitude = bits_as<uint32_t>(value) & 0x7fffffffu;
  const uint32_t overflow = satfinite ? layout.largest : layout.beyond;
  const bool is_over = (code > layout.largest) | (magnitude >= 0x7f800000u);
  const uint32_t bounded = is_over ? overflow : code;
  return magnitude > 0x7f800000u ? layout.nan : bounded;
}

inline uint32_t with_sign(const Layout& layout, uint32_t code, float value) {
  const uint32_t bits = bits_as<uint32_t>(value);
  const bool is_negative = (bits >> 31) & ((bits & 0x7fffffffu) <= 0x7f800000u);
  return (is_negative ? code | layout.sign : code) << layout.shift;
}

// Negative numbers and -0 become 0; a NaN stays.
inline float cut_below_zero(float value) { return value <= 0.0f ? 0.0f : value; }

// To nearest even, for the formats of at most 8 bits: the magnitude is added to a number whose last
// bit is the last one of the format's, and a code counts its steps.
inline uint32_t encode_nearest(const Layout& layout, float value, bool satfinite) {
  constexpr uint32_t MOST = 0x49800000u;  // 2^20: larger than every such format's largest
  const uint32_t whole = bits_as<uint32_t>(value) & 0x7fffffffu;
  const uint32_t magnitude = whole < MOST ? whole : MOST;
  const auto smallest = static_cast<uint32_t>(layout.smallest_exponent() + 127);
  const uint32_t exponent = magnitude >> 23 > smallest ? magnitude >> 23 : smallest;
  const uint32_t magic = (exponent + 23 - static_cast<uint32_t>(layout.mantissa)) << 23;
  const uint32_t steps =
      bits_as<uint32_t>(bits_as<float>(magnitude) + bits_as<float>(magic)) - magic;
  const uint32_t code = ((exponent - smallest) << layout.mantissa) + steps;
  return with_sign(layout, limited(layout, code, value, satfinite), value);
}

enum class Cut : uint8_t { ZERO, NEAREST, NEAREST_AWAY };  // .rz, .rn, .rna

// For every format, one at a time.
inline uint32_t encode_by(const Layout& layout, float value, Cut cut, bool satfinite) {
  const double magnitude = std::isfinite(value) ? std::fabs(static_cast<double>(value)) : 0.0;
  const int smallest = layout.smallest_exponent();
  const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), smallest) : smallest;
  const double scaled = std::ldexp(magnitude, layout.mantissa - exponent);
  const auto whole = static_cast<uint32_t>(scaled);
  const double rest = scaled - whole;
  const bool nearest = rest > 0.5 || (rest == 0.5 && whole % 2 == 1);
  const bool up = cut == Cut::NEAREST ? nearest : cut == Cut::NEAREST_AWAY && rest >= 0.5;
  const uint32_t code =
      (static_cast<uint32_t>(exponent - smallest) << layout.mantissa) + whole + up;
  // What rounding toward zero cuts is no larger than the largest.
  const bool stays_finite = satfinite || (cut == Cut::ZERO && std::isfinite(value));
  return with_sign(layout, limited(layout, code, value, stays_finite), value);
}

// |value| as a power of two, 2^-127 to 2^127; zero becomes the least, a NaN 255.
inline uint32_t encode_exponent(float value, bool up, bool satfinite) {
  if (std::isnan(value)) return 255;
  if (std::isinf(value)) return satfinite ? 254 : 255;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return 0;
  int exponent;
  const double fraction = std::frexp(magnitude, &exponent);
  const int code = exponent - 1 + (up && fraction > 0.5) + 127;
  return static_cast<uint32_t>(std::clamp(code, 0, satfinite ? 254 : 255));
}

inline float decode_exponent(uint32_t code) {
  const uint32_t bits = code == 255 ? 0x7fffffffu : code == 0 ? 0x00400000u : code << 23;
  return bits_as<float>(bits);
}

// A code of at most 8 bits as a number.
inline float decode_narrow(const Layout& layout, uint32_t code) {
  const uint32_t magnitude = code & (layout.sign - 1);
  float value = 0;
  if (magnitude > layout.largest) {
    const bool is_infinite = magnitude == layout.beyond && layout.beyond != layout.nan;
    value = bits_as<float>(is_infinite ? uint32_t{0x7f800000} : uint32_t{0x7fffffff});
  } else {
    const uint32_t mantissa = magnitude & ((1u << layout.mantissa) - 1);
    const uint32_t exponent = magnitude >> layout.mantissa;
    const uint32_t whole = exponent ? mantissa | 1u << layout.mantissa : mantissa;
    const int scale = static_cast<int>(exponent ? exponent : 1) - layout.bias - layout.mantissa;
    value = std::ldexp(static_cast<float>(whole), scale);
  }
  return code & layout.sign ? -value : value;
}

}  // namespace kernelpack
