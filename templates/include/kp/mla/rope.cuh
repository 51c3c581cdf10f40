// Rotary position embedding (RoPE), interleaved: a pair (a, b) at an angle with cosine c and sine s
// becomes (a c - b s, a s + b c), in fp32, rounded once to bf16.
#pragma once
#include <cuda/std/cstdint>
#include <kp/ptx/convert_fp8.cuh>

namespace kp::mla {

constexpr uint32_t ROPE = 64;       // values
constexpr uint32_t ROPE_LANES = 8;  // lanes that have them, eight values each
constexpr uint32_t LANE_PAIRS = ROPE / ROPE_LANES / 2;

// Cosine and sine of the pairs of a lane.
struct Angles {
    float2 pairs[LANE_PAIRS];

    // freqs: [positions, 64], cosine and sine of each pair.
    __device__ __forceinline__ Angles(const float* freqs, uint32_t position) {
        const uint32_t part = threadIdx.x % ROPE_LANES;
        const float* own = freqs + uint64_t(position) * ROPE + part * 2 * LANE_PAIRS;
        const float4 low = reinterpret_cast<const float4*>(own)[0];
        const float4 high = reinterpret_cast<const float4*>(own)[1];
        pairs[0] = make_float2(low.x, low.y), pairs[1] = make_float2(low.z, low.w);
        pairs[2] = make_float2(high.x, high.y), pairs[3] = make_float2(high.z, high.w);
    }

    __device__ __forceinline__ uint32_t rotate(uint32_t i, uint32_t pair) const {
        const float a = __uint_as_float(pair << 16), b = __uint_as_float(pair & 0xffff0000u);
        const float c = pairs[i].x, s = pairs[i].y;
        return ptx::to_bf16_pair(__fsub_rn(__fmul_rn(a, c), __fmul_rn(b, s)),
                                 __fadd_rn(__fmul_rn(a, s), __fmul_rn(b, c)));
    }

    // Eight values, two a word.
    __device__ __forceinline__ uint4 rotate(uint4 eight) const {
        return make_uint4(rotate(0, eight.x), rotate(1, eight.y), rotate(2, eight.z),
                          rotate(3, eight.w));
    }
};

}  // namespace kp::mla
