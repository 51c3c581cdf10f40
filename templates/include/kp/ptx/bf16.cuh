// bf16 conversions without the toolkit's header, which takes longer to compile than a kernel.
// PTX ISA, "cvt".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Two numbers rounded to nearest, ties to even, the first in the low half.
__device__ __forceinline__ uint32_t pack_bf16(float first, float second) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

// Either half as fp32.
__device__ __forceinline__ float low_bf16(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_bf16(uint32_t pair) {
    return __uint_as_float(pair & 0xffff0000);
}

}  // namespace kp::ptx
