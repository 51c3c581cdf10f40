// Weight-stationary tcgen05 MMA of one CTA. With 64 rows, the first half of the accumulator's
// columns is in lanes 0-63 and the second half in lanes 64-127; A in TMEM must be in both. PTX ISA,
// "tcgen05.mma.ws"; 64, 128 or 256 columns.
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// accumulator (+)= a * b^T over 16 elements of K, of 16 bits each.
__device__ __forceinline__ void mma_f16_ws(uint32_t accumulator, uint64_t a, uint64_t b,
                                           uint32_t idesc, bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n"
        "}" ::"r"(accumulator),
        "l"(a), "l"(b), "r"(idesc), "r"(uint32_t(accumulate))
        : "memory");
}

// The same with A in TMEM: two elements a column, the first in the low half.
__device__ __forceinline__ void mma_f16_tensor_a_ws(uint32_t accumulator, uint32_t a, uint64_t b,
                                                    uint32_t idesc, bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.ws.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;\n"
        "}" ::"r"(accumulator),
        "r"(a), "l"(b), "r"(idesc), "r"(uint32_t(accumulate))
        : "memory");
}

// The same over 32 elements of K, of 8 bits each: e4m3 where the descriptor names no other.
__device__ __forceinline__ void mma_f8_ws(uint32_t accumulator, uint64_t a, uint64_t b,
                                          uint32_t idesc, bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.ws.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p;\n"
        "}" ::"r"(accumulator),
        "l"(a), "l"(b), "r"(idesc), "r"(uint32_t(accumulate))
        : "memory");
}

__device__ __forceinline__ void mma_f8_tensor_a_ws(uint32_t accumulator, uint32_t a, uint64_t b,
                                                   uint32_t idesc, bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.ws.cta_group::1.kind::f8f6f4 [%0], [%1], %2, %3, p;\n"
        "}" ::"r"(accumulator),
        "r"(a), "l"(b), "r"(idesc), "r"(uint32_t(accumulate))
        : "memory");
}

}  // namespace kp::ptx
