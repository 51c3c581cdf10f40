// Maximum and minimum that propagate NaN, as 0x7FFFFFFF. PTX ISA, "max", "min".
#pragma once

namespace kp::ptx {

__device__ __forceinline__ float max_nan(float a, float b) {
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}

__device__ __forceinline__ float min_nan(float a, float b) {
    float c;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}

}  // namespace kp::ptx
