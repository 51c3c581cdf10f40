// Dequantisation of KV rows: e4m3 (FP8) with block scales to bf16, multiplied in fp32, rounded
// once.
#pragma once
#include <cuda/std/cstdint>
#include <kp/ptx/bf16.cuh>
#include <kp/ptx/e4m3.cuh>

namespace kp::mla {

// Inline scales: 512 latent bytes, then four scales, then 64 rope numbers of bf16.
struct InlineScales {
    static constexpr uint32_t ROW_BYTES = 656, LATENT = 512, ROPE_OFFSET = 528, BLOCK = 128;
    static constexpr uint32_t ROPE_LANES = 8;  // lanes that each have 16 bytes of a row's rope
    static constexpr bool ROPE_IS_BF16 = true;

    __device__ static const float* scales(const unsigned char* row, const float*, uint32_t column) {
        return reinterpret_cast<const float*>(row + LATENT) + column / BLOCK;
    }
    __device__ static float scale(const unsigned char* row, const float*, uint32_t column) {
        return *scales(row, nullptr, column);
    }
};

// A scale for each COLUMNS of a row of e4m3, in a separate array.
template <uint32_t DEPTH, uint32_t COLUMNS>
struct ScalesBeside {
    static constexpr uint32_t ROW_BYTES = DEPTH, LATENT = 512, ROPE_OFFSET = LATENT;
    static constexpr uint32_t BLOCK = COLUMNS;
    static constexpr uint32_t OF_ROW = (DEPTH + COLUMNS - 1) / COLUMNS;
    static constexpr uint32_t ROPE_LANES = (DEPTH - LATENT) / 16;
    static constexpr bool ROPE_IS_BF16 = false;

    // The scales from that of `column` on.
    __device__ static const float* scales(const unsigned char*, const float* of_row,
                                          uint32_t column) {
        return of_row + column / COLUMNS;
    }
    __device__ static float scale(const unsigned char*, const float* of_row, uint32_t column) {
        return of_row[column / COLUMNS];
    }
};

// Eight codes of e4m3, scaled, as eight bf16.
__device__ __forceinline__ uint4 widen(uint32_t first, uint32_t second, float scale) {
    const float4 a = ptx::unpack_e4m3(first), b = ptx::unpack_e4m3(second);
    return make_uint4(
        ptx::pack_bf16(a.x * scale, a.y * scale), ptx::pack_bf16(a.z * scale, a.w * scale),
        ptx::pack_bf16(b.x * scale, b.y * scale), ptx::pack_bf16(b.z * scale, b.w * scale));
}

// Sixteen codes, as two chunks of eight bf16.
__device__ __forceinline__ void widen(uint4 (&chunks)[2], uint4 codes, float scale) {
    chunks[0] = widen(codes.x, codes.y, scale);
    chunks[1] = widen(codes.z, codes.w, scale);
}

}  // namespace kp::mla
