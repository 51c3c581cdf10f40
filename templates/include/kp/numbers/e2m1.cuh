// fp32 to e2m1 (0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign) by arithmetic, for Hopper, which has no
// instruction for it: nearest, ties to even; beyond 6, infinity and NaN give 6, NaN a positive one.
#pragma once
#include <cuda/std/cstdint>

namespace kp::numbers {

// The values step by 1/2 up to 2, then by 1 up to 4, then by 2. A number whose last place is worth
// one step is added: the sum's last bits count the steps, rounded as every sum is.
__device__ __forceinline__ uint32_t round_to_e2m1(float value) {
    constexpr uint32_t EXPONENT = 0x7F800000, ONE = 0x3F800000;
    const float magnitude = fminf(fabsf(value), 6.0f);  // of NaN: 6
    const uint32_t binade = max(__float_as_uint(magnitude) & EXPONENT, ONE);
    const uint32_t anchor = binade + (22 << 23);
    const uint32_t steps = __float_as_uint(magnitude + __uint_as_float(anchor)) - anchor;
    const uint32_t steps_below = (binade - ONE) >> 22;  // codes that smaller steps take: 0, 2, 4
    const uint32_t sign = __float_as_uint(value) >> 31 << 3;
    return sign | (steps + steps_below);
}

// Eight codes, the first in the lowest four bits.
__device__ __forceinline__ uint32_t to_e2m1(const float* values) {
    uint32_t codes = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) codes |= round_to_e2m1(values[i]) << (4 * i);
    return codes;
}

}  // namespace kp::numbers
