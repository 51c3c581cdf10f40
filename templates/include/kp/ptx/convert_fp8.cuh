// Pairs of e4m3 (FP8), as the hardware rounds: to nearest, ties to even, saturating to 448; NaN is
// 0x7F. Pairs of bf16 too, without the toolkit's header, which takes long to compile. PTX ISA,
// "cvt".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// The first in the low byte.
__device__ __forceinline__ uint32_t to_e4m3_pair(float first, float second) {
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    return pair;
}

// The first in the low half; NaN is 0x7FFF.
__device__ __forceinline__ uint32_t to_bf16_pair(float first, float second) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

// Two codes, the first in the low byte, as fp16 in the same order: exact. Upper bits are ignored.
__device__ __forceinline__ uint32_t to_fp16_pair(uint32_t codes) {
    uint32_t pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<uint16_t>(codes)));
    return pair;
}

}  // namespace kp::ptx
