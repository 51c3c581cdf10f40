// Conversions between fp32 and narrow formats (FP8, FP4), as the hardware rounds: to nearest, ties
// to even, saturating to the largest finite number. PTX ISA, "cvt".
#pragma once
#include <cuda_fp16.h>
#include <cuda/std/cstdint>

namespace kp::ptx {

// NaN gives 0x7F.
__device__ __forceinline__ uint32_t to_e4m3(float value) {
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    return pair;
}

__device__ __forceinline__ float from_e4m3(uint32_t code) {
    uint32_t pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<uint16_t>(code)));
    return __low2float(reinterpret_cast<const __half2&>(pair));
}

// Eight codes, the first in the lowest four bits; NaN gives 6. Only on Blackwell.
__device__ __forceinline__ uint32_t to_e2m1(const float* values) {
    uint32_t codes;
    asm("{\n"
        ".reg .b8 first, second, third, fourth;\n"
        "cvt.rn.satfinite.e2m1x2.f32 first, %2, %1;\n"
        "cvt.rn.satfinite.e2m1x2.f32 second, %4, %3;\n"
        "cvt.rn.satfinite.e2m1x2.f32 third, %6, %5;\n"
        "cvt.rn.satfinite.e2m1x2.f32 fourth, %8, %7;\n"
        "mov.b32 %0, {first, second, third, fourth};\n"
        "}"
        : "=r"(codes)
        : "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]), "f"(values[4]),
          "f"(values[5]), "f"(values[6]), "f"(values[7]));
    return codes;
}

}  // namespace kp::ptx
