// Epilogue conversion: fp32 to the output type, rounded once to nearest even, packed into words for
// shared memory.
#pragma once
#include <kp/numbers/narrow.cuh>

namespace kp {

// As many neighbours as fit into 16 bytes.
template <typename T>
__device__ __forceinline__ uint4 pack_16_bytes(const float* v) {
    uint4 packed;
    T* to = reinterpret_cast<T*>(&packed);
#pragma unroll
    for (uint32_t i = 0; i < 16 / sizeof(T); i += 2) store_pair(to + i, v[i], v[i + 1]);
    return packed;
}

// Two neighbours of 16 bits.
template <typename T>
__device__ __forceinline__ uint32_t pack_pair(float first, float second) {
    static_assert(sizeof(T) == 2, "a word has two of them");
    uint32_t packed;
    store_pair(reinterpret_cast<T*>(&packed), first, second);
    return packed;
}

}  // namespace kp
