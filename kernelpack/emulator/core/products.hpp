// Matrix products as the Python engine's `fast` rounds them (models/mma.py): D = A B^T + C, summed
// in double, rounded once to single.
//
// Products of the types that tensor cores take are exact in double, and mostly their sums are too:
// then the order of additions does not matter. Where it can, an interval around the sum shows
// whether it matters to the rounded result. Where it does, Python is asked for the sum, as the
// order is that of its BLAS.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "doubt.hpp"

namespace kernelpack {

// A (m, k) and B (n, k), row by row -> their product (m, n): models/mma._product.
using AskProduct = void (*)(const double* a, const double* b, double* out, int m, int n, int k);
static AskProduct ask_product = nullptr;

// The exponents of finite numbers, without zeros; `fraction` as `fraction_bits`.
struct Range {
  int least = 0x7ff, most = 0;
  int fraction = 0;
  bool finite = true;

  void add(const double* values, size_t count) {
    // Of the bits without the sign. Zero is left out of `low`, what is not finite of both.
    uint64_t low = ~uint64_t{0}, high = 0, others = 0;
    for (size_t i = 0; i < count; ++i) {
      uint64_t bits;
      std::memcpy(&bits, values + i, 8);
      bits &= ~uint64_t{0} >> 1;
      const uint64_t other = bits >= INFINITE ? ~uint64_t{0} : 0;
      others |= other;
      high = std::max(high, bits & ~other);
      low = std::min(low, (bits - 1) | other);
    }
    finite = finite && !others;
    if (high == 0) return;
    most = std::max(most, static_cast<int>(high >> 52));
    least = std::min(least, std::max(static_cast<int>((low + 1) >> 52), 1));
  }
  bool is_empty() const { return least > most; }

private:
  static constexpr uint64_t INFINITE = 0x7ffull << 52;
};

// Whether sums of k products are exact in double in any order: every partial sum is a multiple of
// the least product's last bit, and smaller than 53 of them.
inline bool sums_are_exact(const Range& a, const Range& b, int k) {
  if (a.is_empty() || b.is_empty()) return true;
  const int carries = 32 - __builtin_clz(static_cast<unsigned>(k - 1) | 1);
  const int top = a.most + b.most + 2 + carries;
  return top - (a.least - a.fraction + b.least - b.fraction) <= 53;
}

constexpr int MOST_COLUMNS = 256, MOST_ROWS = 128, MOST_K = 64;

// A by rows, B by depth: `b[depth * stride + column]`. `exact`: sums of finite numbers are.
struct Product {
  const double* a;
  const double* b;
  int rows, columns, k, stride;
  bool exact, finite;
  Range of_a, of_b;
};

inline Product product_of(const double* a, const Range& of_a, const double* b, const Range& of_b,
                          int rows, int columns, int k, int stride) {
  return {a,
          b,
          rows,
          columns,
          k,
          stride,
          sums_are_exact(of_a, of_b, k),
          of_a.finite && of_b.finite,
          of_a,
          of_b};
}

#ifdef __AVX512F__
constexpr int VECTOR = 8, BLOCK_ROWS = 8, BLOCK_VECTORS = 3;
#else
constexpr int VECTOR = 4, BLOCK_ROWS = 4, BLOCK_VECTORS = 3;
#endif
typedef double Vector __attribute__((vector_size(8 * VECTOR), aligned(8)));

// As products are exact, a fused multiply-add gives what the two operations give.
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
template <int VECTORS>
static inline void sum_block(const Product& p, const double* a, const double* b, double* out) {
#ifdef __clang__
#pragma clang fp contract(fast)
#endif
  Vector sums[BLOCK_ROWS][VECTORS] = {};
  for (int depth = 0; depth < p.k; ++depth) {
    Vector right[VECTORS];
    for (int v = 0; v < VECTORS; ++v)
      std::memcpy(&right[v], b + depth * p.stride + v * VECTOR, sizeof(Vector));
    for (int row = 0; row < BLOCK_ROWS; ++row) {
      const double left = a[row * p.k + depth];
      for (int v = 0; v < VECTORS; ++v) sums[row][v] += left * right[v];
    }
  }
  for (int row = 0; row < BLOCK_ROWS; ++row)
    for (int v = 0; v < VECTORS; ++v)
      std::memcpy(out + row * MOST_COLUMNS + v * VECTOR, &sums[row][v], sizeof(Vector));
}
#pragma GCC pop_options

// The sums of BLOCK_ROWS rows: `out[row * MOST_COLUMNS + column]`.
static void sum_rows(const Product& p, const double* a, double* out) {
  const int vectors = p.columns / VECTOR;
  int v = 0;
  for (; v + BLOCK_VECTORS <= vectors; v += BLOCK_VECTORS)
    sum_block<BLOCK_VECTORS>(p, a, p.b + v * VECTOR, out + v * VECTOR);
  if (vectors - v == 2) sum_block<2>(p, a, p.b + v * VECTOR, out + v * VECTOR);
  if (vectors - v == 1) sum_block<1>(p, a, p.b + v * VECTOR, out + v * VECTOR);
}

inline uint64_t bits_of_double(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  return bits;
}

inline uint32_t float_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

inline bool same_bits(float one, float other) { return float_bits(one) == float_bits(other); }

inline float add_and_round(double sum, bool accumulates, float c) {
  return static_cast<float>(accumulates ? sum + static_cast<double>(c) : sum);
}

// Whether all NaNs that a product can have are the same one, so that the order of additions does
// not choose between them: those of its operands, and the one that infinities make.
class OneNan {
public:
  void look(const double* values, size_t count) {
    constexpr uint64_t INFINITE = 0x7ffull << 52, MADE = 0xfff8000000000000ull;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t bits = bits_of_double(values[i]), plain = bits & ~uint64_t{0} >> 1;
      const uint64_t nan = plain > INFINITE ? bits : MADE;
      least_ = std::min(least_, plain >= INFINITE ? nan : ~uint64_t{0});
      most_ = std::max(most_, plain >= INFINITE ? nan : 0);
    }
  }
  bool is_one() const { return least_ >= most_; }

private:
  uint64_t least_ = ~uint64_t{0}, most_ = 0;
};

inline bool has_one_nan(const Product& p) {
  OneNan nan;
  nan.look(p.a, static_cast<size_t>(p.rows) * p.k);
  for (int depth = 0; depth < p.k; ++depth) nan.look(p.b + depth * p.stride, p.columns);
  return nan.is_one();
}

// Rounds sums to D in place.
class Rounder {
public:
  explicit Rounder(const Product& p) : p_(p) {
    if (!p.finite) one_nan_ = has_one_nan(p);
    if (p.exact) return;
    std::fill(columns_, columns_ + p.columns, 0.0);
    for (int depth = 0; depth < p.k; ++depth)
      for (int j = 0; j < p.columns; ++j) columns_[j] += std::fabs(p.b[depth * p.stride + j]);
  }

  // `count` columns of a row, from `first`.
  void row(int row, int first, int count, const double* sums, bool accumulates, float* d) {
    if (!p_.finite) return special_row(row, first, count, sums, accumulates, d);
    if (!p_.exact && !row_is_exact(row))
      return doubtful_row(row, first, count, sums, accumulates, d);
    if (accumulates) {
      for (int j = 0; j < count; ++j)
        d[j] = static_cast<float>(sums[j] + static_cast<double>(d[j]));
    } else {
      for (int j = 0; j < count; ++j) d[j] = static_cast<float>(sums[j]);
    }
  }

private:
  bool row_is_exact(int row) const {
    Range range;
    range.fraction = p_.of_a.fraction;
    range.add(p_.a + row * p_.k, p_.k);
    return sums_are_exact(range, p_.of_b, p_.k);
  }

  // Twice the bound on the error of a sum of k terms, for sums in two orders.
  double slack(double absolute) const { return absolute * p_.k * 0x1.03p-52; }

  static bool agrees(double sum, double slack, bool accumulates, float c) {
    return same_bits(add_and_round(sum - slack, accumulates, c),
                     add_and_round(sum + slack, accumulates, c));
  }

  // Where an interval around each sum is rounded to one number, the order does not matter.
  void doubtful_row(int row, int first, int count, const double* sums, bool accumulates, float* d) {
    double largest = 0;
    for (int depth = 0; depth < p_.k; ++depth)
      largest = std::max(largest, std::fabs(p_.a[row * p_.k + depth]));
    const double factor = slack(largest);
    float low[MOST_COLUMNS], high[MOST_COLUMNS];
    uint32_t differ = 0;
    for (int j = 0; j < count; ++j) {
      const double width = factor * columns_[first + j], c = accumulates ? d[j] : 0.0;
      low[j] = static_cast<float>(accumulates ? sums[j] - width + c : sums[j] - width);
      high[j] = static_cast<float>(accumulates ? sums[j] + width + c : sums[j] + width);
    }
    for (int j = 0; j < count; ++j) differ |= float_bits(low[j]) ^ float_bits(high[j]);
    if (!differ) {
      std::memcpy(d, low, count * sizeof(float));
      return;
    }
    for (int j = 0; j < count; ++j) {
      const double sum = same_bits(low[j], high[j])
                             ? sums[j]
                             : certain(row, first + j, sums[j], accumulates, d[j]);
      d[j] = add_and_round(sum, accumulates, d[j]);
    }
  }

  // A sum that is right to the last bit of what it is rounded to.
  double certain(int row, int column, double sum, bool accumulates, float c) {
    if (agrees(sum, slack(absolute(row, column)), accumulates, c) || is_exact(row, column))
      return sum;
    return asked(row, column);
  }

  void special_row(int row, int first, int count, const double* sums, bool accumulates, float* d) {
    float rounded[MOST_COLUMNS];
    uint64_t most = 0;
    for (int j = 0; j < count; ++j) {
      rounded[j] = add_and_round(sums[j], accumulates, d[j]);
      most = std::max(most, bits_of_double(sums[j]) & ~uint64_t{0} >> 1);
    }
    const bool all_finite = most < 0x7ffull << 52;
    for (int j = 0; j < count && !(p_.exact && all_finite); ++j) {
      double sum = sums[j];
      if (!std::isfinite(sum))
        sum = special_sum(row, first + j, sum, accumulates, d[j]);
      else if (!p_.exact)
        sum = certain(row, first + j, sum, accumulates, d[j]);
      else
        continue;
      rounded[j] = add_and_round(sum, accumulates, d[j]);
    }
    std::memcpy(d, rounded, count * sizeof(float));
  }

  // A sum that is infinite, or no number: which NaN it is then must be certain.
  double special_sum(int row, int column, double sum, bool accumulates, float c) {
    if (std::isinf(sum)) return sum;
    if (!one_nan_) sum = asked(row, column);
    if (accumulates && std::isnan(c) && bits_of_double(c) != bits_of_double(sum))
      doubt("a sum of two things that are not numbers");
    return sum;
  }

  double absolute(int row, int column) const {
    double sum = 0;
    for (int depth = 0; depth < p_.k; ++depth)
      sum += std::fabs(p_.a[row * p_.k + depth] * p_.b[depth * p_.stride + column]);
    return sum;
  }

  // Whether this sum is exact in any order, as in `sums_are_exact`; products have 24 bits at most.
  bool is_exact(int row, int column) const {
    Range range;
    for (int depth = 0; depth < p_.k; ++depth) {
      const double product = p_.a[row * p_.k + depth] * p_.b[depth * p_.stride + column];
      range.add(&product, 1);
    }
    return range.most + 1 + 6 - (range.least - 24) <= 53;
  }

  double asked(int row, int column) {
    if (asked_.empty()) {
      if (!ask_product) doubt("a sum whose order of additions matters");
      std::vector<double> b(static_cast<size_t>(p_.columns) * p_.k);
      for (int j = 0; j < p_.columns; ++j)
        for (int depth = 0; depth < p_.k; ++depth)
          b[j * p_.k + depth] = p_.b[depth * p_.stride + j];
      asked_.resize(static_cast<size_t>(p_.rows) * p_.columns);
      ask_product(p_.a, b.data(), asked_.data(), p_.rows, p_.columns, p_.k);
    }
    return asked_[static_cast<size_t>(row) * p_.columns + column];
  }

  const Product& p_;
  bool one_nan_ = true;
  double columns_[MOST_COLUMNS];
  std::vector<double> asked_;
};

// D = A B^T + D, or A B^T. `rows[row * parts + part]` is where a part of a row of D lies.
static void multiply(const Product& p, float* const* rows, int parts, bool accumulates) {
  alignas(64) static thread_local double sums[BLOCK_ROWS * MOST_COLUMNS];
  Rounder rounder(p);
  const int width = p.columns / parts;
  for (int first = 0; first < p.rows; first += BLOCK_ROWS) {
    sum_rows(p, p.a + first * p.k, sums);
    for (int i = 0; i < BLOCK_ROWS; ++i)
      for (int part = 0; part < parts; ++part)
        rounder.row(first + i, part * width, width, sums + i * MOST_COLUMNS + part * width,
                    accumulates, rows[(first + i) * parts + part]);
  }
}

}  // namespace kernelpack
