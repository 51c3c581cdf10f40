// Groups of 128 values of a token as e4m3, for products with weights of e4m3 by blocks of 128. Bit
// for bit what the oracle says (kernelpack/kernels/block_scaled/reference.py):
//
//     scale   = min(max |x|, 1200) / 448
//     inverse = 1 / scale, 0 where that is infinite
//     code    = e4m3(x * inverse), the nearest, at most 448
//
// What is larger than 1200 counts as 1200, infinities too; a NaN makes NaN of its group. Codes are
// kept as fp16, which has every one of them: tensor cores add products of fp16 up exactly enough on
// any chip, and Hopper's of e4m3 do not.
#pragma once
#include <cuda/std/cstdint>
#include <kp/ptx/convert_fp8.cuh>
#include <kp/ptx/maximum.cuh>

namespace kp::mla {

constexpr uint32_t GROUP = 128;       // values
constexpr uint32_t GROUP_LANES = 16;  // of a warp, that have a group
constexpr uint32_t LANE_VALUES = GROUP / GROUP_LANES;
constexpr float LARGEST_CODE = 448.0f, LARGEST_VALUE = 1200.0f;

// A group of each of some tokens. Between tokens lie 16 bytes more, so that the lanes of an MMA's
// operand, eight tokens by four parts of them, read different banks.
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

// Two groups by a warp: lanes 0 to 15 have that of token `first`, the others the next one's, each
// eight values of bf16.
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
