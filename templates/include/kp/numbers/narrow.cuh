// Epilogue conversion: fp32 to the output type, rounded once to nearest even, stored one element or
// several neighbours at a time.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace kp {

using bf16 = __nv_bfloat16;
using fp16 = __half;
using fp32 = float;

__device__ __forceinline__ void store_pair(bf16* to, float first, float second) {
    *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(first, second);
}

__device__ __forceinline__ void store_pair(fp16* to, float first, float second) {
    *reinterpret_cast<__half2*>(to) = __floats2half2_rn(first, second);
}

__device__ __forceinline__ void store_pair(fp32* to, float first, float second) {
    *reinterpret_cast<float2*>(to) = make_float2(first, second);
}

__device__ __forceinline__ void store_one(bf16* to, float value) {
    *to = __float2bfloat16_rn(value);
}
__device__ __forceinline__ void store_one(fp16* to, float value) { *to = __float2half_rn(value); }
__device__ __forceinline__ void store_one(fp32* to, float value) { *to = value; }

// Eight neighbours, 16 bytes a store.
template <typename Narrow>
__device__ __forceinline__ void store_eight(Narrow* to, const float* v) {
    uint4 packed;
    Narrow* narrow = reinterpret_cast<Narrow*>(&packed);
#pragma unroll
    for (uint32_t i = 0; i < 8; i += 2) store_pair(narrow + i, v[i], v[i + 1]);
    *reinterpret_cast<uint4*>(to) = packed;
}

__device__ __forceinline__ void store_eight(fp32* to, const float* v) {
    reinterpret_cast<float4*>(to)[0] = make_float4(v[0], v[1], v[2], v[3]);
    reinterpret_cast<float4*>(to)[1] = make_float4(v[4], v[5], v[6], v[7]);
}

}  // namespace kp
