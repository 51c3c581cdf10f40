// Online softmax of one row of scores, in units of log2, whose weights are multiplied as e4m3.
//
// A weight is 2^(y + SHIFT - maximum), y the score plus log2 of its row's scale: scales of V are in
// its weights. The maximum is an *integer*: when it moves, weights change by whole powers of two,
// and so no weight rounds otherwise for the blocks that came before. It lags behind the true one by
// at most SLACK.
//
// Outputs are a mean of V's codes, by rounded weights, times the mean of the rows' scales, by exact
// ones: (sum of r v / sum of r) * (sum of w / sum of w / scale), r the rounded w. Scores that are
// nearly alike all round the same way, which the first mean does not see; and rows whose scale is
// far below the others' count in the second with all that they weigh, though their r be 0. The lse
// has the exact sum.
//
// Below 2^-6 weights of e4m3 are 2^-9 apart: long tails would vanish, or double. `dither` moves
// each key's weights by less than half of that, keys of a tile by amounts that are spread evenly,
// so that a tail is right as a whole.
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/softmax.cuh>
#include <kp/ptx/math.cuh>

namespace kp::mla {

// What is added to the weights of one of `keys` keys before they are rounded, keys a power of two:
// a weight of 0 stays one, as it rounds to 0 from 2^-10 down.
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

    float maximum = lowest();          // an integer, or finite at least
    float highest = minus_infinity();  // the true maximum of scores that are numbers
    float sum = 0;                     // of weights without their rows' scales
    float weights = 0;                 // of weights
    float rounded = 0;                 // of rounded weights

    // What is added to a score, and log2 of its row's scale, to get log2 of its weight.
    __device__ __forceinline__ float offset() const { return SHIFT - maximum; }

    // Whether sums must be rescaled before the weights of a block whose highest y is this.
    __device__ __forceinline__ bool lags(float y) const { return y > maximum + SLACK; }

    // Catch up; the factor that sums of weights until now are to be multiplied by.
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

    // See RunningSoftmax. Hopper's kernels, whose registers are full, do not settle: a row whose
    // scores are all minus infinity is one without keys there. Infinite scales, or rope of bf16
    // that is infinite, alone make such scores: e4m3 has no infinity.
    __device__ __forceinline__ bool is_dead() const { return sum == 0; }

    __device__ __forceinline__ void settle(bool has_keys) {
        if (has_keys && is_dead()) sum = no_number();
    }

    // What outputs are to be multiplied by: see RunningSoftmax.
    __device__ __forceinline__ float normaliser(float sink) const {
        const float total = sum + ptx::exp2_approx(sink * LOG2E + offset());
        return is_dead() ? 0.0f : __fdividef(weights, rounded * total);
    }

    __device__ __forceinline__ float lse(float dead) const {
        return is_dead() ? dead : log_of_sum(sum, -offset());
    }

    // The same in units of log2, which splits of keys are joined by.
    __device__ __forceinline__ float lse_log2() const {
        return is_dead() ? minus_infinity() : log2_of_sum(sum, -offset());
    }

    __device__ __forceinline__ float max_logit() const {
        return is_number(sum) ? highest * LN2 : sum;
    }
};

}  // namespace kp::mla
