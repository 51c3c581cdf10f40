// Approximate functions of the special function unit (MUFU). PTX ISA, "ex2", "lg2".
#pragma once

namespace kp::ptx {

// 2^x within 2^-22 of the number; 2^-inf is 0.
__device__ __forceinline__ float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// log2(x) within 2^-22 where x is 0.5 to 2, and of the number elsewhere.
__device__ __forceinline__ float log2_approx(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

}  // namespace kp::ptx
