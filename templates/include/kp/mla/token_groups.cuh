// Block-scaled FP8 activations: groups of 128 values of a token as e4m3, for products with e4m3
// weights that have a scale for each block of 128. Bit for bit equal to the oracle
// (kernelpack/kernels/block_scaled/reference.py):
//
//     scale   = min(max |x|, 1200) / 448
//     inverse = 1 / scale, 0 if that is infinite
//     code    = e4m3(x * inverse), the nearest, at most 448
//
// Magnitudes above 1200, and infinities, count as 1200; a NaN makes its whole group NaN. Codes are
// stored as fp16, which represents each of them exactly: tensor cores accumulate products of fp16
// precisely enough on every chip, Hopper's do not for e4m3.
#pragma once
#include <cuda/std/cstdint>
#include <kp/ptx/convert_fp8.cuh>
#include <kp/ptx/maximum.cuh>

namespace kp::mla {

constexpr uint32_t GROUP = 128;       // values
constexpr uint32_t GROUP_LANES = 16;  // lanes that share a group
constexpr uint32_t LANE_VALUES = GROUP / GROUP_LANES;
constexpr float LARGEST_CODE = 448.0f, LARGEST_VALUE = 1200.0f;

// One group of each of TOKENS tokens. 16 bytes of padding between tokens put the lanes of an MMA
// operand, eight tokens by four parts, into different banks.
template <uint32_t TOKENS>
struct TokenGroups {
    struct Token {
        uint4 values[GROUP_LANES];  // of fp16
        uint4 apart;
    } tokens[TOKENS];
    float scales[TOKENS];
};

__device__ __forceinline__ float first_bf16(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float second_bf16(uint32_t pair) {
    return __uint_as_float(pair & 0xffff0000u);
}

__device__ __forceinline__ float largest_of_eight(uint4 eight) {
    float most = 0;
    for (const uint32_t pair : {eight.x, eight.y, eight.z, eight.w}) {
        most = ptx::max_nan(most, fabsf(first_bf16(pair)));
        most = ptx::max_nan(most, fabsf(second_bf16(pair)));
    }
    return most;
}

// Two values as codes, as fp16.
__device__ __forceinline__ uint32_t quantise_pair(uint32_t pair, float inverse) {
    return ptx::to_fp16_pair(ptx::to_e4m3_pair(__fmul_rn(first_bf16(pair), inverse),
                                               __fmul_rn(second_bf16(pair), inverse)));
}

// A warp quantises two groups: lanes 0 to 15 have token `first`, the others the next token, each
// eight bf16 values.
template <uint32_t TOKENS>
__device__ __forceinline__ void quantise_two(TokenGroups<TOKENS>& groups, uint32_t first,
                                             uint4 eight) {
    const uint32_t lane = threadIdx.x % 32, part = lane % GROUP_LANES;
    const uint32_t token = first + lane / GROUP_LANES;
    float most = largest_of_eight(eight);
    for (uint32_t step = 1; step < GROUP_LANES; step *= 2)
        most = ptx::max_nan(most, __shfl_xor_sync(0xffffffff, most, step));
    const float scale = __fdiv_rn(ptx::min_nan(most, LARGEST_VALUE), LARGEST_CODE);
    const float exact = __frcp_rn(scale);
    const float inverse = isinf(exact) ? 0.0f : exact;
    groups.tokens[token].values[part] =
        make_uint4(quantise_pair(eight.x, inverse), quantise_pair(eight.y, inverse),
                   quantise_pair(eight.z, inverse), quantise_pair(eight.w, inverse));
    if (part == 0) groups.scales[token] = scale;
}

}  // namespace kp::mla
