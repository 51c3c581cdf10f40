// NVFP4 to bf16, exactly: e2m1 codes, two a byte and the low nibble first, times e4m3 scales, one
// for 16 codes. A product has at most six significant bits, and bf16 holds eight.
//
// Every product comes out as 2^-8 of its value, so that the way there stays inside bf16's range:
//   code   its exponent and mantissa bits put under bf16's:  times 2^-126  (0.5: a subnormal)
//   scale  likewise times 2^-120, then multiplied by 2^238:  times 2^118   (subnormals: the same)
// and whoever sums multiplies the sum by NVFP4_UNIT. Bit 7 of a scale is not looked at.
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

// Bytes of two words, picked by the nibbles of `selector`; a nibble of 8 and up picks the sign of
// its byte, eight times. PTX ISA, "prmt".
__device__ __forceinline__ uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t selector) {
    uint32_t picked;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(picked) : "r"(a), "r"(b), "r"(selector));
    return picked;
}

// The two codes of byte number `byte` of words, as bf16 times 2^-126, the low nibble's first.
class CodePair {
  public:
    __device__ __forceinline__ explicit CodePair(uint32_t byte)
        : selector(0xc480 + 0x1111 * byte) {}

    __device__ __forceinline__ uint32_t operator()(uint32_t word) const {
        // A half of `spread` is [sign, eight times][sign, exponent, mantissa, four bits of junk].
        const uint32_t spread = pick_bytes(word << 4, word, selector);
        return spread << 2 & SIGN_EXPONENT_MANTISSA;
    }

  private:
    static constexpr uint32_t SIGN_EXPONENT_MANTISSA = 0x81c081c0;
    uint32_t selector;
};

// Two e4m3 scales, whose bits begin at bits 4 and 20 of `shifted`, as bf16 times 2^118. Bits around
// them are ignored. NaN is NaN.
__device__ __forceinline__ uint32_t widen_scales(uint32_t shifted) {
    constexpr uint32_t EXPONENT_MANTISSA = 0x07f007f0;
    constexpr uint32_t TWO_TO_127 = 0x7f007f00, TWO_TO_111 = 0x77007700;
    constexpr uint32_t OVERFLOWS = 0x778d778d;  // 1.1 * 2^112: too much for 480 * 2^7, not for 448
    const uint32_t most = multiply_pairs(shifted & EXPONENT_MANTISSA, TWO_TO_127);
    // NaN reads as 480 so far: it alone becomes infinite, and infinity times zero is NaN.
    const uint32_t zero_or_nan = multiply_pairs(multiply_pairs(most, OVERFLOWS), 0);
    return multiply_add_pairs(most, TWO_TO_111, zero_or_nan);
}

// Two scales that are bf16 times 2^118, in the halves of a word.
class ScalePair {
  public:
    __device__ __forceinline__ explicit ScalePair(uint32_t wide) : wide(wide) {}

    // A pair of codes times the scale of one half.
    __device__ __forceinline__ uint32_t times(uint32_t half, uint32_t pair) const {
        return multiply_pairs(pair, twice(half));
    }

  private:
    // A half in both halves: an operand's modifier, no instruction.
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
