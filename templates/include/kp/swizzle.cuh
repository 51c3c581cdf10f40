// The shared-memory swizzle of TMA and the tensor cores, which avoids bank conflicts: a 16-byte
// chunk's place is XORed with the number of its 128-byte line. CUDA driver API,
// "CUtensorMapSwizzle"; PTX ISA, "Swizzling modes".
#pragma once
#include <cuda/std/cstdint>

namespace kp {

// The swizzled place of `offset`, counted from a 1024-byte boundary, in rows of SPAN bytes (32, 64,
// 128).
template <uint32_t SPAN>
__device__ __forceinline__ constexpr uint32_t swizzle(uint32_t offset) {
    return offset ^ (offset >> 3 & (SPAN - 16));
}

}  // namespace kp
