// Numbers of 16 bits to f32 and back, without branches, so that loops of them become vectors.
#pragma once

#include <cstdint>

#include "views.hpp"

namespace kernelpack {

constexpr uint16_t NAN_16 = 0x7fff;  // the one NaN that conversions to 16 bits give

// Exact; the payload of a NaN moves with its bits.
inline float bf16_to_f32(uint16_t bits) {
  return bits_as<float>(static_cast<uint32_t>(bits) << 16);
}

// Exact: the exponent is moved by a product, which also makes subnormals normal.
inline float f16_to_f32(uint16_t bits) {
  constexpr uint32_t SCALE = 0x77800000u;  // 2^112
  const uint32_t magnitude = (bits & 0x7fffu) << 13;
  const uint32_t scaled = bits_as<uint32_t>(bits_as<float>(magnitude) * bits_as<float>(SCALE));
  const uint32_t special = magnitude | 0x7f800000u;  // infinity, NaN
  return bits_as<float>((magnitude >= 0x0f800000u ? special : scaled) | (bits & 0x8000u) << 16);
}

// To nearest even.
inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = bits_as<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? NAN_16 : rounded);
}

// To nearest even. Subnormal results are rounded by the addition of a number whose last bit is
// theirs; of the others, the carry of the rounding goes on into the exponent, up to infinity.
inline uint16_t f32_to_f16(float value) {
  constexpr uint32_t MAGIC = 0x3f000000u;  // 0.5, whose last bit is 2^-24
  const uint32_t bits = bits_as<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  const uint32_t small =
      bits_as<uint32_t>(bits_as<float>(magnitude) + bits_as<float>(MAGIC)) - MAGIC;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
  const uint32_t finite = magnitude < 0x38800000u ? small : normal;
  const uint32_t bounded = magnitude >= 0x47800000u ? 0x7c00u : finite;
  const uint32_t signed_bits = bounded | (bits >> 16 & 0x8000u);
  return static_cast<uint16_t>(magnitude > 0x7f800000u ? NAN_16 : signed_bits);
}

// What a row of f16 or bf16 computes with.
struct F16 {
  static float decode(uint16_t bits) { return f16_to_f32(bits); }
  static uint16_t encode(float value) { return f32_to_f16(value); }
};

struct Bf16 {
  static float decode(uint16_t bits) { return bf16_to_f32(bits); }
  static uint16_t encode(float value) { return f32_to_bf16(value); }
};

}  // namespace kernelpack
