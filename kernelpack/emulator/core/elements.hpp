// Element types of matrix operands, and their bits as numbers (formats/narrow.py, PTX ISA 5.2.3).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "doubt.hpp"

namespace kernelpack {

enum class Element : uint8_t { FP16, BF16, TF32, E4M3, E5M2, E2M1, UE8M0, UE4M3, FP32 };

constexpr int bits_of(Element type) {
  switch (type) {
    case Element::FP16:
    case Element::BF16: return 16;
    case Element::TF32:
    case Element::FP32: return 32;
    case Element::E2M1: return 4;
    default: return 8;
  }
}

// Bits of a significand behind the leading one: of a subnormal fewer count.
constexpr int fraction_bits(Element type) {
  switch (type) {
    case Element::FP32: return 23;
    case Element::FP16:
    case Element::TF32: return 10;
    case Element::BF16: return 7;
    case Element::E4M3:
    case Element::UE4M3: return 3;
    case Element::E5M2: return 2;
    case Element::E2M1: return 1;
    case Element::UE8M0: return 0;
  }
  return 52;
}

// The exponent of the smallest normal number, of the types of 8 bits.
constexpr int least_exponent(Element type) { return type == Element::E5M2 ? -14 : -6; }

// Every value of the types of 8 bits, by code.
struct ByteValues {
  double e4m3[256], e5m2[256], ue4m3[256], ue8m0[256];

  ByteValues() {
    for (int code = 0; code < 256; ++code) {
      const bool is_nan = (code & 0x7f) == 0x7f;
      e4m3[code] = is_nan ? (code & 0x80 ? -NAN : NAN) : value(code, 4, 3, 7);
      ue4m3[code] = is_nan ? NAN : value(code & 0x7f, 4, 3, 7);
      ue8m0[code] = code == 255 ? NAN : std::ldexp(1.0, code - 127);
      e5m2[code] = value(code, 5, 2, 15);
      if ((code & 0x7c) == 0x7c)
        e5m2[code] = code & 3 ? (code & 0x80 ? -NAN : NAN) : code & 0x80 ? -INFINITY : INFINITY;
    }
  }

  static double value(int code, int exponent_bits, int mantissa_bits, int bias) {
    const int mantissa = code & ((1 << mantissa_bits) - 1);
    const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
    const int whole = exponent ? mantissa | 1 << mantissa_bits : mantissa;
    const double size = std::ldexp(whole, (exponent ? exponent : 1) - bias - mantissa_bits);
    return code >> (exponent_bits + mantissa_bits) & 1 ? -size : size;
  }
};

inline const ByteValues BYTE_VALUES;
constexpr double E2M1_VALUES[16] = {0,    0.5,  1,  1.5,  2,  3,  4,  6,
                                    -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

inline float bits_to_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline uint32_t float_to_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

inline double from_bf16(uint16_t code) { return bits_to_float(uint32_t{code} << 16); }

inline double from_fp16(uint16_t code) {
  const uint32_t magnitude = code & 0x7fffu;
  float size = bits_to_float(magnitude << 13) * 0x1p112f;  // right for subnormals as well
  if (magnitude >= 0x7c00u) size = bits_to_float(magnitude << 13 | 0x7f800000u);
  return code & 0x8000u ? -size : size;
}

// How many numbers 16 bytes hold.
constexpr int per_chunk(Element type) { return 128 / bits_of(type); }

// The numbers in 16 bytes, lowest bits first.
template <Element TYPE>
inline void numbers_of_chunk(const uint8_t* from, double* to) {
  if constexpr (bits_of(TYPE) == 16) {
    uint16_t codes[8];
    std::memcpy(codes, from, 16);
    for (int i = 0; i < 8; ++i)
      to[i] = TYPE == Element::BF16 ? from_bf16(codes[i]) : from_fp16(codes[i]);
  } else if constexpr (TYPE == Element::TF32) {
    uint32_t codes[4];
    std::memcpy(codes, from, 16);
    for (int i = 0; i < 4; ++i) to[i] = bits_to_float(codes[i] & 0xffffe000u);
  } else if constexpr (TYPE == Element::E2M1) {
    for (int i = 0; i < 16; ++i) {
      to[2 * i] = E2M1_VALUES[from[i] & 15];
      to[2 * i + 1] = E2M1_VALUES[from[i] >> 4];
    }
  } else {
    const double* table = TYPE == Element::E4M3 ? BYTE_VALUES.e4m3 : BYTE_VALUES.e5m2;
    for (int i = 0; i < 16; ++i) to[i] = table[from[i]];
  }
}

}  // namespace kernelpack
