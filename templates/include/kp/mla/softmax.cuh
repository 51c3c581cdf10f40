// Online softmax of one row of scores, in units of log2: weights are 2^(score * scale - maximum).
// The maximum lags behind the true one by at most SLACK, so that sums seldom need rescaling;
// weights are then up to 2^SLACK, which bf16 and fp32 hold. `Maxima` says which numbers it may be.
//
// Outputs are a mean of V by the weights as they were rounded: (sum of r v) / (sum of r). Equal
// scores all round the same way, and a single key has no other to make up for its rounding: this
// mean cancels both. The lse has the exact sum.
//
// The sum says what a row is. It is 0 where no key weighs anything; it is no number where a score
// is none, or plus infinity, and then so is all else of the row. Scores may be as far as 2^20: from
// there on fp32 does not tell weights apart, and a row of scores past 2^24 may be no number.
#pragma once
#include <cuda/std/cstdint>
#include <kp/ptx/math.cuh>

namespace kp::mla {

constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000); }
__device__ __forceinline__ float no_number() { return __uint_as_float(0x7fffffff); }
__device__ __forceinline__ bool is_number(float x) { return x == x; }

// The least finite number: no infinity is taken from another, and no score is left behind it.
__device__ __forceinline__ float lowest() { return __uint_as_float(0xff7fffff); }

// log2(sum * 2^maximum) of a sum that is a number, which may be near 0 where neither is near 1. The
// sum's power of two joins the maximum exactly where the two cancel, so that what is rounded before
// is a log2 of 0 to 1, not one as large as the maximum.
__device__ __forceinline__ float log2_of_number(float sum, float maximum) {
    constexpr uint32_t FRACTION = 23, FRACTION_MASK = (1u << FRACTION) - 1, ONE = 0x3f800000;
    const uint32_t bits = __float_as_uint(sum);                      // normal and above 0
    const float rest = __uint_as_float(bits & FRACTION_MASK | ONE);  // 1 to 2
    const float whole = float(int32_t(bits >> FRACTION) - int32_t(ONE >> FRACTION)) + maximum;
    return whole + log2f(rest);
}

// log2(sum * 2^maximum), and its natural logarithm; of no number, that.
__device__ __forceinline__ float log2_of_sum(float sum, float maximum) {
    return is_number(sum) ? log2_of_number(sum, maximum) : sum;
}

__device__ __forceinline__ float log_of_sum(float sum, float maximum) {
    if (!is_number(sum)) return sum;
    return log2_of_number(sum, maximum) * LN2;
}

// What maxima are. By its own score a key weighs exactly 1: of few keys, the one that weighs most
// has no rounding to bf16. By whole numbers a weight rounds alike whatever the maximum is: splits
// of keys join to what one split gives.
enum class Maxima { SCORES, WHOLE };

template <Maxima MAXIMA>
struct RunningSoftmax {
    static constexpr float SLACK = 6;

    float maximum = lowest();
    float highest = minus_infinity();  // the true maximum, of scores that are numbers
    float sum = 0;                     // of weights
    float rounded = 0;                 // of weights as they are multiplied

    // Whether sums must be rescaled before the weights of a block whose highest score is this.
    __device__ __forceinline__ bool is_behind(float score) const { return score > maximum + SLACK; }

    // The same, taking note of the score.
    __device__ __forceinline__ bool lags(float score) {
        highest = fmaxf(highest, score);
        return is_behind(score);
    }

    // Catch up with a score, if it is too far ahead; the factor that sums of weights until now are
    // to be multiplied by. It depends on this row alone, so that no other changes its numbers.
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

    // A row of no weight has no key; or all its scores are minus infinity: 0 / 0. What is rounded
    // off far scores may make a weight infinite.
    __device__ __forceinline__ void settle(bool has_keys) {
        if (has_keys && is_dead() || sum == -minus_infinity()) sum = no_number();
    }

    // What outputs are to be multiplied by. A sink, in natural units, is one more weight without a
    // value; `sink` -inf is none, +inf leaves nothing of the outputs.
    __device__ __forceinline__ float normaliser(float sink) const {
        const float total = sum + ptx::exp2_approx(sink * LOG2E - maximum);
        return is_dead() ? 0.0f : sum / (rounded * total);
    }

    // The logarithm of the sum of e^score, without the sink.
    __device__ __forceinline__ float lse(float dead) const {
        return is_dead() ? dead : log_of_sum(sum, maximum);
    }

    // The same in units of log2, by which splits of keys are joined.
    __device__ __forceinline__ float lse_log2() const {
        return is_dead() ? minus_infinity() : log2_of_sum(sum, maximum);
    }

    __device__ __forceinline__ float max_logit() const {
        return is_number(sum) ? highest * LN2 : sum;
    }
};

}  // namespace kp::mla
