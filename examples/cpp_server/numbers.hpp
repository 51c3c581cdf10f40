// Numbers of kernels as the host computes with them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace server {

/// A float as bf16, rounded to the nearest, ties to even.
inline std::uint16_t to_bf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

inline float from_bf16(std::uint16_t code) {
  const std::uint32_t bits = std::uint32_t{code} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Sign, two bits of exponent, one of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
inline float from_e2m1(unsigned code) {
  constexpr float values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  return code & 8 ? -values[code & 7] : values[code & 7];
}

/// A scale: four bits of exponent, three of mantissa; below 0x7F, which is NaN.
inline float from_e4m3(unsigned code) {
  const int exponent = static_cast<int>(code >> 3), mantissa = static_cast<int>(code & 7);
  return exponent ? std::ldexp(8.0f + static_cast<float>(mantissa), exponent - 10)
                  : std::ldexp(static_cast<float>(mantissa), -9);
}

/// The nearest scale of any sign, ties to even; what is larger than 448 becomes 448.
inline unsigned to_e4m3(float value) {
  const float size = std::fabs(value);
  unsigned low = 0;
  while (low < 0x7E && from_e4m3(low + 1) <= size) ++low;
  unsigned nearest = low;
  if (low < 0x7E) {
    const float middle = (from_e4m3(low) + from_e4m3(low + 1)) / 2;
    nearest += size > middle || (size == middle && low % 2);
  }
  return nearest | (std::signbit(value) ? 0x80u : 0u);
}

inline float from_signed_e4m3(unsigned code) {
  const float size = from_e4m3(code & 0x7F);
  return code & 0x80 ? -size : size;
}

}  // namespace server
