// Where TMA and the tensor cores put 16 bytes among swizzled ones: the number of a 128-byte line
// decides which chunk of a row. CUDA driver API, "CUtensorMapSwizzle"; PTX ISA, "Swizzling modes".
#pragma once
#include <cuda/std/cstdint>

namespace kp {

// `offset` from a 1024-byte boundary, as if rows of `SPAN` bytes (32, 64, 128) were not swizzled.
template <uint32_t SPAN>
__device__ __forceinline__ constexpr uint32_t swizzle(uint32_t offset) {
    return offset ^ (offset >> 3 & (SPAN - 16));
}

}  // namespace kp
