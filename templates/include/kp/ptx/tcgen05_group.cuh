// tcgen05 MMAs of one CTA or of a pair (cta_group) with the operands that attention needs: A in
// TMEM, B MN-major. PTX ISA, "tcgen05.mma", "tcgen05.cp".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// The matrix descriptor of an MN-major operand: a row of K has 128 swizzled bytes, 64 columns of 16
// bits or 128 of 8; eight rows are 1024 bytes, and the next columns begin `columns_step` bytes
// later. The address is at a 1024-byte boundary.
__device__ __forceinline__ uint64_t matrix_descriptor_mn_major(uint32_t address,
                                                               uint32_t columns_step) {
    constexpr uint64_t SWIZZLE_128B = 2ull << 61;
    constexpr uint64_t VERSION = 1ull << 46;
    constexpr uint64_t EIGHT_ROWS_BYTES = uint64_t(1024 >> 4) << 32;
    return SWIZZLE_128B | VERSION | EIGHT_ROWS_BYTES | uint64_t(columns_step >> 4) << 16 |
           (address & 0x3ffff) >> 4;
}

// In an instruction descriptor: the operand is MN-major.
constexpr uint32_t MN_MAJOR_A = 1u << 15, MN_MAJOR_B = 1u << 16;

// accumulator (+)= a * b^T over 16 elements of K, of 16 bits each.
template <uint32_t CTAS>
__device__ __forceinline__ void mma_f16_group(uint32_t accumulator, uint64_t a, uint64_t b,
                                              uint32_t idesc, bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.cta_group::%5.kind::f16 [%0], %1, %2, %3, p;\n"
        "}" ::"r"(accumulator),
        "l"(a), "l"(b), "r"(idesc), "r"(uint32_t(accumulate)), "n"(CTAS)
        : "memory");
}

// The same with A in TMEM: two elements a column, the first in the low half.
template <uint32_t CTAS>
__device__ __forceinline__ void mma_f16_tensor_a_group(uint32_t accumulator, uint32_t a, uint64_t b,
                                                       uint32_t idesc, bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.cta_group::%5.kind::f16 [%0], [%1], %2, %3, p;\n"
        "}" ::"r"(accumulator),
        "r"(a), "l"(b), "r"(idesc), "r"(uint32_t(accumulate)), "n"(CTAS)
        : "memory");
}

// The same over 32 elements of K, of 8 bits each: e4m3 where the descriptor names no other.
template <uint32_t CTAS>
__device__ __forceinline__ void mma_f8_group(uint32_t accumulator, uint64_t a, uint64_t b,
                                             uint32_t idesc, bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.cta_group::%5.kind::f8f6f4 [%0], %1, %2, %3, p;\n"
        "}" ::"r"(accumulator),
        "l"(a), "l"(b), "r"(idesc), "r"(uint32_t(accumulate)), "n"(CTAS)
        : "memory");
}

template <uint32_t CTAS>
__device__ __forceinline__ void mma_f8_tensor_a_group(uint32_t accumulator, uint32_t a, uint64_t b,
                                                      uint32_t idesc, bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.cta_group::%5.kind::f8f6f4 [%0], [%1], %2, %3, p;\n"
        "}" ::"r"(accumulator),
        "r"(a), "l"(b), "r"(idesc), "r"(uint32_t(accumulate)), "n"(CTAS)
        : "memory");
}

// Copy 64 rows of 16 bytes to four TMEM columns: row r to lanes r and r + 64, the layout of A for
// an MMA of 128 rows a pair. In a pair each CTA copies its own rows, from the same offset. Later
// MMAs of the same thread read them.
template <uint32_t CTAS>
__device__ __forceinline__ void copy_rows_twice_group(uint32_t columns, uint64_t rows) {
    asm volatile("tcgen05.cp.cta_group::%2.64x128b.warpx2::02_13 [%0], %1;" ::"r"(columns),
                 "l"(rows), "n"(CTAS)
                 : "memory");
}

}  // namespace kp::ptx
