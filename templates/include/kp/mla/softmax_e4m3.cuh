// Online softmax of one row of scores, in units of log2, whose weights are multiplied as e4m3.
//
// A weight is 2^(y + SHIFT - maximum), y the score plus log2 of its row's scale: scales of V are in
// its weights. The maximum is an *integer*: when it moves, weights change by whole powers of two,
// and so no weight rounds otherwise for the blocks that came before. It lags behind the true one by
// at most SLACK. Outputs are divided by the sum of rounded weights, which are what multiplies V:
// were it the sum of unrounded ones, scores that are nearly alike would all round the same way, and
// outputs be up to 6 % off. The lse has the unrounded sum.
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/softmax.cuh>
#include <kp/ptx/math.cuh>

namespace kp::mla {

struct NarrowSoftmax {
    static constexpr float SHIFT = 6, SLACK = 2.75f;  // together at most log2(448)
    static_assert(SHIFT + SLACK <= 8.807f, "the largest e4m3");

    float maximum = -1e30f;          // an integer, or finite at least
    float highest = minus_infinity();  // the true maximum of scores
    float sum = 0;                   // of weights without their rows' scales
    float rounded = 0;               // the same of rounded weights

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
        rounded *= factor;
        return factor;
    }

    __device__ __forceinline__ bool is_dead() const { return highest == minus_infinity(); }

    __device__ __forceinline__ void settle(bool) {}

    // What outputs are to be multiplied by: see RunningSoftmax.
    __device__ __forceinline__ float normaliser(float sink) const {
        return is_dead() ? 0.0f : 1.0f / (rounded + ptx::exp2_approx(sink * LOG2E + offset()));
    }

    __device__ __forceinline__ float lse(float dead) const {
        return is_dead() ? dead : log_of_sum(sum, -offset());
    }

    // The same in units of log2, which splits of keys are joined by.
    __device__ __forceinline__ float lse_log2() const {
        return is_dead() ? minus_infinity() : log2_of_sum(sum, -offset());
    }

    __device__ __forceinline__ float max_logit() const { return highest * LN2; }
};

}  // namespace kp::mla
