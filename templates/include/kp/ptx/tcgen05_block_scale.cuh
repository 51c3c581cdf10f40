// Block-scaled MMA of FP4 (NVFP4): 16 elements along K share a ue4m3 scale factor, and the scale
// factors lie in TMEM. PTX ISA, "tcgen05.mma" with .kind::mxf4nvf4, "tcgen05.cp".
//
// An atom is the scale factors of 128 rows and 64 of K: 512 bytes, row r at
// 16 * (r % 32) + 4 * (r / 32). In TMEM row r is in lane r % 32 (of each 32 lanes), column r / 32.
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

constexpr uint32_t SCALE_ATOM_BYTES = 512;
constexpr uint32_t SCALE_ATOM_COLUMNS = 4;

// The matrix descriptor of an atom in shared memory: rows of 16 bytes, one after the other.
__device__ __forceinline__ uint64_t scale_atom_descriptor(uint32_t address) {
    constexpr uint64_t VERSION = 1ull << 46;
    constexpr uint64_t EIGHT_ROWS_BYTES = uint64_t(128 >> 4) << 32;
    return VERSION | EIGHT_ROWS_BYTES | (address & 0x3ffff) >> 4;
}

// Copy an atom to four TMEM columns, for a pair in both CTAs. Later MMAs of the same thread read
// it.
template <uint32_t CTAS>
__device__ __forceinline__ void copy_scale_atom(uint32_t columns, uint32_t shared) {
    asm volatile("tcgen05.cp.cta_group::%2.32x128b.warpx4 [%0], %1;" ::"r"(columns),
                 "l"(scale_atom_descriptor(shared)), "n"(CTAS)
                 : "memory");
}

// The instruction descriptor: e2m1 by e2m1 with ue4m3 scales, both K-major, into fp32, rows x
// columns.
__device__ constexpr uint32_t instruction_descriptor_nvfp4(uint32_t rows, uint32_t columns) {
    constexpr uint32_t E2M1 = 1;
    return E2M1 << 7 | E2M1 << 10 | (columns >> 3) << 17 | (rows >> 7) << 27;
}

// accumulator (+)= (a * a_scales) * (b * b_scales)^T over 64 elements of K.
template <uint32_t CTAS>
__device__ __forceinline__ void mma_nvfp4(uint32_t accumulator, uint64_t a, uint64_t b,
                                          uint32_t idesc, uint32_t a_scales, uint32_t b_scales,
                                          bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %6, 0;\n"
        "tcgen05.mma.cta_group::%7.kind::mxf4nvf4.block_scale.block16 "
        "[%0], %1, %2, %3, [%4], [%5], p;\n"
        "}" ::"r"(accumulator),
        "l"(a), "l"(b), "r"(idesc), "r"(a_scales), "r"(b_scales), "r"(uint32_t(accumulate)),
        "n"(CTAS)
        : "memory");
}

}  // namespace kp::ptx
