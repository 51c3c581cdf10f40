// Hopper's sums of fp8 products (models/mma.exact with 13 bits; models/wgmma.summation): every
// product, and C, is cut at 13 bits below the largest exponent of them, the sum at 13 bits of
// mantissa. Such a sum is another number than fp32's, so it is made so in every run.
#pragma once

#include "products.hpp"

namespace kernelpack {

constexpr int KEPT_BITS = 13;
constexpr int LEAST_EXPONENT = -600;  // below the exponent of any product but zero
constexpr int ZERO_EXPONENT = -10'000;

// The exponents of 1 <= |s| < 2 as in mma._parts; of fp8 no product is so small that its subnormals
// would matter: `smallest` is the type's least exponent.
inline int exponent_of(double value, int smallest) {
  if (value == 0 || !std::isfinite(value)) return ZERO_EXPONENT;
  int64_t bits;
  std::memcpy(&bits, &value, 8);
  return std::max(static_cast<int>(bits >> 52 & 0x7ff) - 1023, smallest);
}

inline double power_of_two(int exponent) {
  const int64_t bits = static_cast<int64_t>(exponent + 1023) << 52;
  double value;
  std::memcpy(&value, &bits, 8);
  return value;
}

// Toward zero to 13 bits of mantissa; beyond fp32 is infinity.
inline float cut(double total) {
  if (std::fabs(total) >= 0x1p128)
    return std::copysign(INFINITY, static_cast<float>(total > 0 ? 1 : -1));
  const float single = static_cast<float>(total);
  uint32_t bits;
  std::memcpy(&bits, &single, 4);
  bits &= 0xffffffffu << (23 - KEPT_BITS);
  float kept;
  std::memcpy(&kept, &bits, 4);
  return kept;
}

// One row of D in place.
class TruncatedRow {
public:
  TruncatedRow(const Product& p, const double* a, const int* a_exponents, const int* b_exponents)
      : p_(p), a_(a), a_exponents_(a_exponents), b_exponents_(b_exponents) {}

  void sum(bool accumulates, float* d) {
    bool finite = p_.finite;
    for (int j = 0; j < p_.columns; ++j) {
      c_[j] = accumulates ? d[j] : 0;
      finite = finite && std::isfinite(c_[j]);
      largest_[j] = std::max(exponent_of(c_[j], -126), LEAST_EXPONENT);
    }
    for (int depth = 0; depth < p_.k; ++depth)
      for (int j = 0; j < p_.columns; ++j)
        largest_[j] =
            std::max(largest_[j], a_exponents_[depth] + b_exponents_[depth * p_.columns + j]);
    for (int j = 0; j < p_.columns; ++j) factor_[j] = power_of_two(KEPT_BITS - largest_[j]);
    add_up();
    for (int j = 0; j < p_.columns; ++j) {
      const double total =
          (total_[j] + std::trunc(c_[j] * factor_[j])) * power_of_two(largest_[j] - KEPT_BITS);
      d[j] = finite || std::isfinite(plain(j)) ? cut(total) : special(plain(j));
    }
  }

private:
  // The sum as it is: not finite exactly where hardware's is not.
  double plain(int column) const {
    double sum = 0;
    for (int depth = 0; depth < p_.k; ++depth) sum += a_[depth] * p_.b[depth * p_.stride + column];
    return sum + c_[column];
  }

  // Infinity, or the NaN that every NaN becomes.
  static float special(double value) {
    if (std::isinf(value)) return static_cast<float>(value);
    constexpr uint32_t NAN_BITS = 0x7fffffff;
    float nan;
    std::memcpy(&nan, &NAN_BITS, 4);
    return nan;
  }

  // From +0, as numpy begins: no sum is -0.
  void add_up() {
    std::fill(total_, total_ + p_.columns, 0.0);
    for (int depth = 0; depth < p_.k; ++depth) {
      const double left = a_[depth];
      const double* right = p_.b + depth * p_.stride;
      for (int j = 0; j < p_.columns; ++j) total_[j] += std::trunc(left * right[j] * factor_[j]);
    }
  }

  const Product& p_;
  const double* a_;
  const int *a_exponents_, *b_exponents_;
  double c_[MOST_COLUMNS], factor_[MOST_COLUMNS], total_[MOST_COLUMNS];
  int largest_[MOST_COLUMNS];
};

// D = A B^T + D of fp8, or A B^T; D by rows of `columns`.
static void sum_truncated(const Product& p, int smallest_a, int smallest_b, bool accumulates,
                          float* d) {
  static thread_local int b_exponents[MOST_COLUMNS * MOST_K];
  for (int depth = 0; depth < p.k; ++depth)
    for (int j = 0; j < p.columns; ++j) {
      b_exponents[depth * p.columns + j] = exponent_of(p.b[depth * p.stride + j], smallest_b);
    }
  for (int row = 0; row < p.rows; ++row) {
    int a_exponents[MOST_K];
    const double* a = p.a + row * p.k;
    for (int depth = 0; depth < p.k; ++depth)
      a_exponents[depth] = exponent_of(a[depth], smallest_a);
    TruncatedRow(p, a, a_exponents, b_exponents).sum(accumulates, d + row * p.columns);
  }
}

}  // namespace kernelpack
