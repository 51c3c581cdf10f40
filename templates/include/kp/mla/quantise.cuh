// Quantisation of Q to e4m3 (FP8), one scale a head: values are multiplied by `factor`, 448 / the
// largest magnitude. A code times `scale`, the largest magnitude / 448, is the value.
#pragma once
#include <cuda/std/cstdint>
#include <kp/ptx/bf16.cuh>
#include <kp/ptx/e4m3.cuh>

namespace kp::mla {

struct QueryScale {
    static constexpr float LARGEST = 448;  // of e4m3

    float factor, scale;

    __device__ __forceinline__ explicit QueryScale(float largest_magnitude) {
        const float largest = largest_magnitude > 0 ? largest_magnitude : 1.0f;
        factor = __fdiv_rn(LARGEST, largest);
        scale = __fdiv_rn(largest, LARGEST);
    }
};

// The factor of a head's scores, given the head's scale of Q. A head of zeros may have scale 0,
// which would turn the minus infinity of masked keys into NaN.
__device__ __forceinline__ float with_scale(float scale_log2e, float of_head) {
    constexpr float LEAST = 1.17549435e-38f;
    const float scale = scale_log2e * of_head;
    return scale < LEAST ? LEAST : scale;  // NaN stays NaN
}

// Two bf16 numbers, the first in the low half.
__device__ __forceinline__ float2 unpack_bf16(uint32_t pair) {
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000));
}

__device__ __forceinline__ float largest_magnitude(float largest, uint4 eight) {
    for (const uint32_t pair : {eight.x, eight.y, eight.z, eight.w}) {
        const float2 v = unpack_bf16(pair);
        largest = fmaxf(largest, fmaxf(fabsf(v.x), fabsf(v.y)));
    }
    return largest;
}

// Four bf16 numbers times `factor`, as e4m3; and two, as bf16.
__device__ __forceinline__ uint32_t narrow(uint32_t first, uint32_t second, float factor) {
    const float2 a = unpack_bf16(first), b = unpack_bf16(second);
    return ptx::pack_e4m3(a.x * factor, a.y * factor, b.x * factor, b.y * factor);
}

__device__ __forceinline__ uint32_t multiply(uint32_t pair, float factor) {
    const float2 v = unpack_bf16(pair);
    return ptx::pack_bf16(v.x * factor, v.y * factor);
}

}  // namespace kp::mla
