// Elects one lane of a warp, the leader that issues TMA, MMA and arrivals. PTX ISA, "elect.sync".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

__device__ __forceinline__ bool elect_one() {
    uint32_t elected;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "elect.sync _|p, 0xffffffff;\n"
        "selp.b32 %0, 1, 0, p;\n"
        "}"
        : "=r"(elected));
    return elected != 0;
}

}  // namespace kp::ptx
