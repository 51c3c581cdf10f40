// fp32 to an output type, rounded once to nearest even; two neighbours at a time, or one.
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

__device__ __forceinline__ void store_one(bf16* to, float value) { *to = __float2bfloat16_rn(value); }
__device__ __forceinline__ void store_one(fp16* to, float value) { *to = __float2half_rn(value); }
__device__ __forceinline__ void store_one(fp32* to, float value) { *to = value; }

}  // namespace kp
