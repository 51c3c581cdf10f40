// Online softmax of one row of scores, in units of log2: weights are 2^(score * scale - maximum).
// Rescaling is lazy: the running maximum may be below the true one by at most SLACK, so that sums
// seldom need rescaling. Weights are then up to 2^SLACK, which bf16 and fp32 hold. `Maxima` chooses
// the values that the maximum may take.
//
// Outputs are the mean of V by the rounded weights: (sum of r v) / (sum of r). This cancels the
// rounding of equal scores, which all round the same way, and of a single key. The lse uses the
// exact sum.
//
// The sum classifies a row. It is 0 if no key has weight. It is NaN if a score is NaN or plus
// infinity, and then the row's outputs, lse and maximum are NaN too. Scores should stay within
// 2^20: beyond that fp32 cannot distinguish weights, and a row of scores above 2^24 may become NaN.
#pragma once
#include <cuda/std/cstdint>
#include <kp/ptx/math.cuh>

namespace kp::mla {

constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000); }
__device__ __forceinline__ float no_number() { return __uint_as_float(0x7fffffff); }
__device__ __forceinline__ bool is_number(float x) { return x == x; }

// The lowest finite number: no infinity is subtracted from another, and no finite score is below
// it.
__device__ __forceinline__ float lowest() { return __uint_as_float(0xff7fffff); }

// log2(sum * 2^maximum) for a sum that is not NaN. The result may be near 0 although sum and
// maximum are large. The sum's exponent is added to the maximum exactly, so that only a log2
// between 0 and 1 is rounded before the two cancel.
__device__ __forceinline__ float log2_of_number(float sum, float maximum) {
    constexpr uint32_t FRACTION = 23, FRACTION_MASK = (1u << FRACTION) - 1, ONE = 0x3f800000;
    const uint32_t bits = __float_as_uint(sum);                      // normal and above 0
    const float rest = __uint_as_float(bits & FRACTION_MASK | ONE);  // 1 to 2
    const float whole = float(int32_t(bits >> FRACTION) - int32_t(ONE >> FRACTION)) + maximum;
    return whole + log2f(rest);
}

// log2(sum * 2^maximum), and its natural logarithm; NaN stays NaN.
__device__ __forceinline__ float log2_of_sum(float sum, float maximum) {
    return is_number(sum) ? log2_of_number(sum, maximum) : sum;
}

__device__ __forceinline__ float log_of_sum(float sum, float maximum) {
    if (!is_number(sum)) return sum;
    return log2_of_number(sum, maximum) * LN2;
}

// The values of running maxima. SCORES: the maximum is a score, so the key with the largest weight
// weighs exactly 1, without rounding to bf16. WHOLE: the maximum is an integer, so a weight rounds
// the same way for every maximum, and joined splits give what one split gives.
enum class Maxima { SCORES, WHOLE };

template <Maxima MAXIMA>
struct RunningSoftmax {
    static constexpr float SLACK = 6;

    float maximum = lowest();
    float highest = minus_infinity();  // the true maximum, without NaN scores
    float sum = 0;                     // of weights
    float rounded = 0;                 // of the rounded weights, as they are multiplied

    // Whether sums must be rescaled before a block whose highest score is `score`.
    __device__ __forceinline__ bool is_behind(float score) const { return score > maximum + SLACK; }

    // The same; it also updates `highest`.
    __device__ __forceinline__ bool lags(float score) {
        highest = fmaxf(highest, score);
        return is_behind(score);
    }

    // Raise the maximum to a score if it lags too far. Returns the factor for earlier sums. It
    // depends only on this row, so other rows cannot change its results.
    __device__ __forceinline__ float rescale(float score) {
        if (!is_behind(score)) return 1.0f;
        const float before = maximum;
        maximum = MAXIMA == Maxima::WHOLE ? ceilf(score) : score;
        const float factor = ptx::exp2_approx(before - maximum);
        sum *= factor;
        rounded *= factor;
        return factor;
    }

    __device__ __forceinline__ bool is_dead() const { return sum == 0; }

    // A row without weight has no keys, or all its scores are minus infinity: then it is 0 / 0,
    // NaN. Rounding of very large scores may make a weight infinite.
    __device__ __forceinline__ void settle(bool has_keys) {
        if (has_keys && is_dead() || sum == -minus_infinity()) sum = no_number();
    }

    // The factor of the outputs. An attention sink, in natural units, is one more weight without a
    // value; -inf is no sink, +inf makes the outputs zero.
    __device__ __forceinline__ float normaliser(float sink) const {
        const float total = sum + ptx::exp2_approx(sink * LOG2E - maximum);
        return is_dead() ? 0.0f : sum / (rounded * total);
    }

    // The logarithm of the sum of e^score, without the sink.
    __device__ __forceinline__ float lse(float dead) const {
        return is_dead() ? dead : log_of_sum(sum, maximum);
    }

    // The same in units of log2, for joining splits (split-KV).
    __device__ __forceinline__ float lse_log2() const {
        return is_dead() ? minus_infinity() : log2_of_sum(sum, maximum);
    }

    __device__ __forceinline__ float max_logit() const {
        return is_number(sum) ? highest * LN2 : sum;
    }
};

}  // namespace kp::mla
