// Online softmax of one row of scores, in units of log2, with weights (P) in e4m3 (FP8).
//
// A weight is 2^(y + SHIFT - maximum), where y is the score plus log2 of its row's scale: the
// scales of V are folded into the weights. The maximum is an *integer*: when it changes, weights
// change by whole powers of two, so that earlier blocks do not change how a weight rounds. The
// maximum may be below the true one by at most SLACK (lazy rescaling).
//
// Outputs are the mean of V's codes by rounded weights, times the mean of the rows' scales by exact
// weights: (sum of r v / sum of r) * (sum of w / sum of w / scale), where r is the rounded w. The
// first mean cancels the rounding of nearly equal scores, which all round the same way. The second
// counts rows with a very small scale by their full weight even if their r is 0. The lse uses the
// exact sum.
//
// Below 2^-6, weights in e4m3 are 2^-9 apart: long tails would vanish or double. `dither` shifts
// each key's weight by less than half of that, by amounts spread evenly over the keys of a tile, so
// that the tail's sum is right.
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/softmax.cuh>
#include <kp/ptx/math.cuh>

namespace kp::mla {

// The dither of one of `keys` keys (a power of two), added to its weight before rounding. A weight
// of 0 stays 0, because 2^-10 and less rounds to 0.
template <uint32_t keys>
__device__ __forceinline__ constexpr float dither(uint32_t key) {
    constexpr float STEP = 0x1p-9f;  // of e4m3's smallest numbers
    uint32_t place = 0;              // the key's bits in reverse: neighbours are far apart
    for (uint32_t bit = 1, of = keys / 2; bit < keys; bit *= 2, of /= 2) {
        if (key & bit) place += of;
    }
    return ((place + 0.5f) / keys - 0.5f) * STEP;
}

struct NarrowSoftmax {
    static constexpr float SHIFT = 6, SLACK = 2.75f;  // together at most log2(448)
    static_assert(SHIFT + SLACK <= 8.807f, "the largest e4m3");

    float maximum = lowest();          // an integer; at first the lowest finite number
    float highest = minus_infinity();  // the true maximum, without NaN scores
    float sum = 0;                     // of weights without their rows' scales
    float weights = 0;                 // of weights
    float rounded = 0;                 // of rounded weights

    // log2 of a weight is its y plus this.
    __device__ __forceinline__ float offset() const { return SHIFT - maximum; }

    // Whether sums must be rescaled before a block whose highest y is `y`.
    __device__ __forceinline__ bool lags(float y) const { return y > maximum + SLACK; }

    // Raise the maximum if it lags too far. Returns the factor for earlier sums.
    __device__ __forceinline__ float rescale(float y) {
        if (!lags(y)) return 1.0f;
        const float before = maximum;
        maximum = ceilf(y);
        const float factor = ptx::exp2_approx(before - maximum);
        sum *= factor;
        weights *= factor;
        rounded *= factor;
        return factor;
    }

    // See RunningSoftmax. Hopper's kernels have no registers left for `settle`: there, a row whose
    // scores are all minus infinity counts as a row without keys. Only infinite scales or infinite
    // bf16 rope make such scores, because e4m3 has no infinity.
    __device__ __forceinline__ bool is_dead() const { return sum == 0; }

    __device__ __forceinline__ void settle(bool has_keys) {
        if (has_keys && is_dead()) sum = no_number();
    }

    // The factor of the outputs: see RunningSoftmax.
    __device__ __forceinline__ float normaliser(float sink) const {
        const float total = sum + ptx::exp2_approx(sink * LOG2E + offset());
        return is_dead() ? 0.0f : __fdividef(weights, rounded * total);
    }

    __device__ __forceinline__ float lse(float dead) const {
        return is_dead() ? dead : log_of_sum(sum, -offset());
    }

    // The same in units of log2, for joining splits (split-KV).
    __device__ __forceinline__ float lse_log2() const {
        return is_dead() ? minus_infinity() : log2_of_sum(sum, -offset());
    }

    __device__ __forceinline__ float max_logit() const {
        return is_number(sum) ? highest * LN2 : sum;
    }
};

}  // namespace kp::mla
