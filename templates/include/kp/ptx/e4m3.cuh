// e4m3 (FP8), four at a time, without the toolkit's header, which takes longer to compile than a
// kernel. PTX ISA, "cvt".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Four numbers rounded to nearest, ties to even, saturating to 448; the first is in the lowest
// byte.
__device__ __forceinline__ uint32_t pack_e4m3(float a, float b, float c, float d) {
    uint32_t packed;
    asm("{\n"
        ".reg .b16 low, high;\n"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
        "mov.b32 %0, {low, high};\n"
        "}"
        : "=r"(packed)
        : "f"(a), "f"(b), "f"(c), "f"(d));
    return packed;
}

// Four codes, the first in the lowest byte, as fp32.
__device__ __forceinline__ float4 unpack_e4m3(uint32_t packed) {
    float4 v;
    asm("{\n"
        ".reg .b16 low, high, a, b, c, d;\n"
        ".reg .b32 ab, cd;\n"
        "mov.b32 {low, high}, %4;\n"
        "cvt.rn.f16x2.e4m3x2 ab, low;\n"
        "cvt.rn.f16x2.e4m3x2 cd, high;\n"
        "mov.b32 {a, b}, ab;\n"
        "mov.b32 {c, d}, cd;\n"
        "cvt.f32.f16 %0, a;\n"
        "cvt.f32.f16 %1, b;\n"
        "cvt.f32.f16 %2, c;\n"
        "cvt.f32.f16 %3, d;\n"
        "}"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "r"(packed));
    return v;
}

}  // namespace kp::ptx
