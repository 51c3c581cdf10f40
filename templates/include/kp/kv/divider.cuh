// Fast division by a run-time constant, such as the rows of a page: one true division, then a
// multiplication and a correction for each quotient.
//
// With inverse = floor((2^32 - 1) / d), n / d - n * inverse / 2^32 = n * (2^32 - inverse * d) /
// (d * 2^32), and 2^32 - inverse * d <= d: the estimate is the quotient or one less.
#pragma once
#include <cuda/std/cstdint>

namespace kp::kv {

struct Divider {
    uint32_t divisor, inverse;

    Divider() = default;
    __device__ __forceinline__ explicit Divider(uint32_t divisor)
        : divisor(divisor), inverse(0xffffffffu / divisor) {}

    __device__ __forceinline__ uint32_t quotient(uint32_t n) const {
        const uint32_t estimate = __umulhi(n, inverse);
        return estimate + (n - estimate * divisor >= divisor);
    }
};

}  // namespace kp::kv
