// fp32 to e2m1, the 4-bit elements of NVFP4 (0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign), by arithmetic:
// Hopper has no conversion instruction. Rounds to nearest, ties to even. Magnitudes above 6 and the
// NaN that arithmetic makes become 6.
#pragma once
#include <cuda/std/cstdint>

namespace kp::numbers {

// A code counts steps: of 1/2 up to 2, of 1 up to 4, then of 2. A magnitude y is min(2 y, y + 2,
// y / 2 + 4) steps. Adding 2^23 rounds to an integer, which is then in the low bits.
constexpr float WHOLE = 8388608.0f;

// The bits of WHOLE plus the code without its sign.
__device__ __forceinline__ uint32_t whole_steps(float value) {
    const float magnitude = fabsf(value);
    const float low = fminf(__fmaf_rn(magnitude, 2.0f, WHOLE), magnitude + (WHOLE + 2));
    const float high = __fmaf_rn(magnitude, 0.5f, WHOLE + 4);
    return __float_as_uint(fminf(fminf(low, high), WHOLE + 7));  // of NaN: the last
}

// Eight codes, the first in the lowest four bits.
__device__ __forceinline__ uint32_t to_e2m1(const float* values) {
    constexpr uint32_t WHOLE_BITS = 0x4B000000;
    uint32_t codes = 0;
#pragma unroll
    for (int i = 7; i >= 0; --i) {
        codes = __funnelshift_l(__float_as_uint(values[i]), codes, 1);  // the sign comes first
        codes = (codes << 3) + whole_steps(values[i]);
    }
    return codes - (WHOLE_BITS << 4) - WHOLE_BITS;  // older values have shifted out
}

}  // namespace kp::numbers
