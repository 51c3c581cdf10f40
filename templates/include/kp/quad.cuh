// Epilogue shuffles within a quad, four neighbouring lanes: MMA accumulator fragments leave each
// lane a pair of columns of every block of eight.
#pragma once
#include <cuda/std/cstdint>

namespace kp {

// Before the call, lane q of a quad holds word q of each of four blocks. After it, lane q holds the
// four words of block q.
__device__ __forceinline__ void transpose_quad(uint32_t (&words)[4]) {
    constexpr uint32_t ALL = 0xffffffff;
#pragma unroll
    for (uint32_t apart = 1; apart <= 2; apart *= 2) {
        const bool upper = threadIdx.x & apart;
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
            if (i & apart) continue;
            uint32_t& low = words[i];
            uint32_t& high = words[i + apart];
            const uint32_t got = __shfl_xor_sync(ALL, upper ? low : high, apart);
            (upper ? low : high) = got;
        }
    }
}

template <typename T>
__device__ __forceinline__ void store_words(T* to, const uint32_t (&words)[4]) {
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace kp
