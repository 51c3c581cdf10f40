// Exact dequantisation of NVFP4 to bf16: e2m1 codes, two a byte with the low nibble first, times
// e4m3 block scales, one for 16 codes. A product has at most six significant bits; bf16 has eight.
//
// Every product is 2^-8 of its value, so that intermediate results stay inside bf16's range:
//   code   exponent and mantissa bits placed at bf16's:       times 2^-126  (0.5: a subnormal)
//   scale  likewise times 2^-120, then multiplied by 2^238:   times 2^118   (subnormals: the same)
// The epilogue multiplies the sum by NVFP4_UNIT. Bit 7 of a scale is ignored.
#pragma once
#include <cuda/std/cstdint>

namespace kp {

constexpr float NVFP4_UNIT = 256;

// Products of two pairs of bf16, a pair in a register.
__device__ __forceinline__ uint32_t multiply_pairs(uint32_t a, uint32_t b) {
    uint32_t product;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

__device__ __forceinline__ uint32_t multiply_add_pairs(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t sum;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
    return sum;
}

// Bytes of two words, selected by the nibbles of `selector`. A nibble from 8 on selects its byte's
// sign, replicated eight times. PTX ISA, "prmt".
__device__ __forceinline__ uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t selector) {
    uint32_t picked;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(picked) : "r"(a), "r"(b), "r"(selector));
    return picked;
}

// The two codes in byte number `byte` of a word, as bf16 times 2^-126; the low nibble is first.
class CodePair {
  public:
    __device__ __forceinline__ explicit CodePair(uint32_t byte)
        : selector(0xc480 + 0x1111 * byte) {}

    __device__ __forceinline__ uint32_t operator()(uint32_t word) const {
        // Each half of `spread` is [sign, eight times][sign, exponent, mantissa, four junk bits].
        const uint32_t spread = pick_bytes(word << 4, word, selector);
        return spread << 2 & SIGN_EXPONENT_MANTISSA;
    }

  private:
    static constexpr uint32_t SIGN_EXPONENT_MANTISSA = 0x81c081c0;
    uint32_t selector;
};

// Two e4m3 scales, which begin at bits 4 and 20 of `shifted`, as bf16 times 2^118. Other bits are
// ignored. NaN stays NaN.
__device__ __forceinline__ uint32_t widen_scales(uint32_t shifted) {
    constexpr uint32_t EXPONENT_MANTISSA = 0x07f007f0;
    constexpr uint32_t TWO_TO_127 = 0x7f007f00, TWO_TO_111 = 0x77007700;
    constexpr uint32_t OVERFLOWS = 0x778d778d;  // 1.1 * 2^112: overflows 480 * 2^7, but not 448
    const uint32_t most = multiply_pairs(shifted & EXPONENT_MANTISSA, TWO_TO_127);
    // Here NaN reads as 480. Only it overflows to infinity, and infinity times zero is NaN.
    const uint32_t zero_or_nan = multiply_pairs(multiply_pairs(most, OVERFLOWS), 0);
    return multiply_add_pairs(most, TWO_TO_111, zero_or_nan);
}

// Two scales as bf16 times 2^118, one in each half of a word.
class ScalePair {
  public:
    __device__ __forceinline__ explicit ScalePair(uint32_t wide) : wide(wide) {}

    // A pair of codes times the scale of one half.
    __device__ __forceinline__ uint32_t times(uint32_t half, uint32_t pair) const {
        return multiply_pairs(pair, twice(half));
    }

  private:
    // One half copied to both: an operand modifier in SASS, so it costs no instruction.
    __device__ __forceinline__ uint32_t twice(uint32_t half) const {
        uint16_t low, high;
        uint32_t both;
        asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(wide));
        asm("mov.b32 %0, {%1, %1};" : "=r"(both) : "h"(half ? high : low));
        return both;
    }

    uint32_t wide;
};

}  // namespace kp
