// One word of fp32 to shared memory. PTX ISA, "st".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

__device__ __forceinline__ void store_shared(uint32_t address, float v) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(v) : "memory");
}

}  // namespace kp::ptx
