// Warp-level MMA of block-scaled FP8 weights: a warp's block of weights, 32 rows by 128 of K, kept
// in registers, times groups of tokens (swap-AB: weights are the M of the MMA).
//
// Rows of weights are columns of the result. An MMA has 16 of them as rows and 8 tokens as columns.
// The assignment of rows, and the order of K, is free: a lane takes 16 adjacent bytes of a row as
// its part of K, and rows 4r to 4r + 3 of the block, so that it gets four adjacent columns of a
// token.
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/token_groups.cuh>
#include <kp/ptx/convert_fp8.cuh>
#include <kp/ptx/global.cuh>
#include <kp/ptx/mma.cuh>

namespace kp::mla {

constexpr uint32_t BLOCK_ROWS = 32, BLOCK_BYTES = GROUP;  // of e4m3
constexpr uint32_t MMA_TOKENS = 8;
constexpr uint32_t TILES = 2, HALVES = 2;   // of 16 rows, of 8 rows
constexpr uint32_t PIECES = 2, PIECE = 64;  // PIECE: bytes of K that four lanes have
constexpr uint32_t STEPS = 4;               // MMAs of a piece

// A lane's bytes of a block, in flight from global memory.
struct RawBlock {
    uint4 pieces[TILES][HALVES][PIECES];

    // first: the block's first byte; row_bytes: from one row of weights to the next.
    __device__ __forceinline__ void load(const uint8_t* first, uint32_t row_bytes) {
        const uint32_t r = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
#pragma unroll
        for (uint32_t i = 0; i < TILES * HALVES * PIECES; ++i) {
            const uint32_t piece = i % PIECES, row = 4 * r + i / PIECES;
            pieces[i / 4][i / 2 % 2][piece] =
                ptx::load_once(first + row * row_bytes + piece * PIECE + 16 * q);
        }
    }
};

// A lane's products, four columns of two tokens: columns 4r to 4r + 3 of tokens 2q and 2q + 1, with
// r = lane / 4 and q = lane % 4.
struct Products {
    float tiles[TILES][4] = {};

    __device__ __forceinline__ float4 of(uint32_t token) const {
        return make_float4(tiles[0][token], tiles[0][2 + token], tiles[1][token],
                           tiles[1][2 + token]);
    }
};

// The same bytes as MMA operands in fp16.
struct WeightBlock {
    uint32_t operands[TILES][PIECES * STEPS][4];

    __device__ __forceinline__ explicit WeightBlock(const RawBlock& raw) {
#pragma unroll
        for (uint32_t tile = 0; tile < TILES; ++tile)
#pragma unroll
            for (uint32_t piece = 0; piece < PIECES; ++piece)
#pragma unroll
                for (uint32_t half = 0; half < HALVES; ++half)
                    widen(&operands[tile][piece * STEPS], half, raw.pieces[tile][half][piece]);
    }

    __device__ __forceinline__ static void widen(uint32_t (*steps)[4], uint32_t half, uint4 codes) {
        const uint32_t words[STEPS] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
        for (uint32_t step = 0; step < STEPS; ++step) {
            steps[step][half] = ptx::to_fp16_pair(words[step]);
            steps[step][2 + half] = ptx::to_fp16_pair(words[step] >> 16);
        }
    }

    // Multiply by eight tokens from `first` on.
    template <uint32_t TOKENS>
    __device__ __forceinline__ Products multiply(const TokenGroups<TOKENS>& groups,
                                                 uint32_t first) const {
        const uint32_t r = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
        const uint4* values = groups.tokens[first + r].values;
        Products made;
#pragma unroll
        for (uint32_t piece = 0; piece < PIECES; ++piece) {
#pragma unroll
            for (uint32_t i = 0; i < STEPS / 2; ++i) {
                const uint4 two = values[8 * piece + 2 * q + i];
                const uint32_t step = piece * STEPS + 2 * i;
#pragma unroll
                for (uint32_t tile = 0; tile < TILES; ++tile) {
                    ptx::mma_fp16(made.tiles[tile], operands[tile][step], two.x, two.y);
                    ptx::mma_fp16(made.tiles[tile], operands[tile][step + 1], two.z, two.w);
                }
            }
        }
        return made;
    }
};

__device__ __forceinline__ float4 scaled(float4 sums, float of_token, float of_weights) {
    const auto one = [&](float sum) { return __fmul_rn(__fmul_rn(sum, of_token), of_weights); };
    return make_float4(one(sums.x), one(sums.y), one(sums.z), one(sums.w));
}

}  // namespace kp::mla
