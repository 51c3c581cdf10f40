// RMSNorm of 512 latent values by a warp, 16 a lane as in append.cuh. Bit for bit equal to the
// oracle (kernelpack/kernels/mla_decode_absorb/new_rows.py):
//
//     rstd = 1 / sqrt(mean x^2 + epsilon)      fp32, every operation rounded to nearest
//     y    = bf16(G(x * rstd) * gamma)         G: rounded to gamma's type
//
// A lane adds its squares one after another, then a butterfly shuffle sums over the lanes.
#pragma once
#include <cuda/std/cstdint>
#include <kp/kv/append.cuh>
#include <kp/ptx/convert_fp8.cuh>

namespace kp::mla {

constexpr float PER_LATENT = 1.0f / 512;

__device__ __forceinline__ float sum_of_squares(const kv::LaneValues& x) {
    float sum = 0;
#pragma unroll
    for (const uint32_t pair : x.latent) {
        const float a = kv::first_of(pair), b = kv::second_of(pair);
        sum = __fadd_rn(sum, __fmul_rn(a, a));
        sum = __fadd_rn(sum, __fmul_rn(b, b));
    }
    for (uint32_t step = 1; step < 32; step *= 2)
        sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffff, sum, step));
    return sum;
}

// Weights of the norm, in bf16 or fp32.
struct Gamma {
    const void* values;
    bool is_wide;

    // Pair i of a lane's values, times rstd and its weights.
    __device__ __forceinline__ uint32_t times(uint32_t pair, float rstd, uint32_t i) const {
        const uint32_t at = threadIdx.x % 32 * (kv::LANE_LATENT / 2) + i;
        const float a = __fmul_rn(kv::first_of(pair), rstd);
        const float b = __fmul_rn(kv::second_of(pair), rstd);
        if (is_wide) {
            const float2 by = static_cast<const float2*>(values)[at];
            return ptx::to_bf16_pair(__fmul_rn(a, by.x), __fmul_rn(b, by.y));
        }
        const uint32_t by = static_cast<const uint32_t*>(values)[at];
        const uint32_t rounded = ptx::to_bf16_pair(a, b);
        return ptx::to_bf16_pair(__fmul_rn(kv::first_of(rounded), kv::first_of(by)),
                                 __fmul_rn(kv::second_of(rounded), kv::second_of(by)));
    }
};

__device__ __forceinline__ void normalise(kv::LaneValues& x, const Gamma& gamma, float epsilon) {
    const float mean = __fmul_rn(sum_of_squares(x), PER_LATENT);
    const float rstd = __frcp_rn(__fsqrt_rn(__fadd_rn(mean, epsilon)));
#pragma unroll
    for (uint32_t i = 0; i < kv::LANE_LATENT / 2; ++i)
        x.latent[i] = gamma.times(x.latent[i], rstd, i);
}

}  // namespace kp::mla
