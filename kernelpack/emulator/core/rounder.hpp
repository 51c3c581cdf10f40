// Sums in double rounded to single, where the order of additions does not matter; where it does,
// Python is asked.
#pragma once

#include <cmath>
#include <vector>

#include "doubt.hpp"
#include "elements.hpp"
#include "sums.hpp"

namespace kernelpack {

// A (m, k) and B (n, k), row by row -> their product (m, n): models/mma._product. Not 0: there is
// none.
using AskProduct = int (*)(const double* a, const double* b, double* out, int m, int n, int k);
static AskProduct ask_product = nullptr;

inline uint64_t bits_of_double(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  return bits;
}

inline bool same_bits(float one, float other) { return float_to_bits(one) == float_to_bits(other); }

inline float add_and_round(double sum, bool accumulates, float c) {
  return static_cast<float>(accumulates ? sum + static_cast<double>(c) : sum);
}

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
    if (!p.finite) find_odd_columns();
    if (p.exact) return;
    std::fill(columns_, columns_ + p.columns, 0.0);
    for (int depth = 0; depth < p.k; ++depth)
      for (int j = 0; j < p.columns; ++j) columns_[j] += std::fabs(p.b[depth * p.stride + j]);
    for (int i = 0; i < odds_; ++i) columns_[odd_[i]] = 0;  // their sums are looked at alone
  }

  // `count` columns of a row, from `first`.
  void row(int row, int first, int count, const double* sums, bool accumulates, float* d) {
    if (!p_.finite) return row_among_special(row, first, count, sums, accumulates, d);
    finite_row(row, first, count, sums, accumulates, d, p_.exact || is_exact(range_of_row(row)));
  }

private:
  static constexpr const char* OTHER_NANS = "a sum of two things that are not numbers";

  void finite_row(int row, int first, int count, const double* sums, bool accumulates, float* d,
                  bool is_exact) {
    if (is_exact)
      exact_row(count, sums, accumulates, d);
    else
      doubtful_row(row, first, count, sums, accumulates, d);
  }

  static void exact_row(int count, const double* sums, bool accumulates, float* d) {
    if (accumulates) {
      for (int j = 0; j < count; ++j)
        d[j] = static_cast<float>(sums[j] + static_cast<double>(d[j]));
    } else {
      for (int j = 0; j < count; ++j) d[j] = static_cast<float>(sums[j]);
    }
  }

  Range range_of_row(int row) const {
    Range range;
    range.fraction = p_.of_a.fraction;
    range.add(p_.a + row * p_.k, p_.k);
    return range;
  }
  bool is_exact(const Range& row) const { return sums_are_exact(row, p_.of_b, p_.k); }

  // Columns of B with an infinity or a NaN, ascending.
  void find_odd_columns() {
    for (int first = 0; first < p_.columns; first += VECTOR) {
      Bits most = {};
      const int count = std::min(VECTOR, p_.columns - first);
      for (int depth = 0; depth < p_.k; ++depth)
        most = most_of(most, bits_from(p_.b + depth * p_.stride + first, count) & MAGNITUDE);
      for (int i = 0; i < count; ++i)
        if (most[i] >= INFINITE_BITS) odd_[odds_++] = first + i;
    }
  }

  // Where either side has a number that is not finite. Few rows and columns have one, mostly.
  void row_among_special(int row, int first, int count, const double* sums, bool accumulates,
                         float* d) {
    const Range range = range_of_row(row);
    const bool is_exact = p_.exact || this->is_exact(range);
    if (!range.finite) return special_row(row, first, count, sums, accumulates, d, is_exact);
    float before[MOST_COLUMNS];
    for (int i = 0; i < odds_; ++i)
      if (is_among(odd_[i], first, count)) before[i] = d[odd_[i] - first];
    finite_row(row, first, count, sums, accumulates, d, is_exact);
    for (int i = 0; i < odds_; ++i) {
      const int j = odd_[i] - first;
      if (!is_among(odd_[i], first, count)) continue;
      const double sum = special_sum(row, odd_[i], sums[j], accumulates, before[i]);
      d[j] = add_and_round(sum, accumulates, before[i]);
    }
  }
  static bool is_among(int column, int first, int count) {
    return column >= first && column < first + count;
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
    for (int j = 0; j < count; ++j) differ |= float_to_bits(low[j]) ^ float_to_bits(high[j]);
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

  // `is_exact`: sums of finite numbers are.
  void special_row(int row, int first, int count, const double* sums, bool accumulates, float* d,
                   bool is_exact) {
    float rounded[MOST_COLUMNS];
    for (int j = 0; j < count; ++j) rounded[j] = add_and_round(sums[j], accumulates, d[j]);
    const bool are_certain = is_exact && (are_finite(sums, count) || is_nan_certain());
    if (accumulates && are_certain && meet_other_nans(sums, d, count)) doubt(OTHER_NANS);
    for (int j = 0; j < count && !are_certain; ++j) {
      double sum = sums[j];
      if (!std::isfinite(sum))
        sum = special_sum(row, first + j, sum, accumulates, d[j]);
      else if (!is_exact)
        sum = certain(row, first + j, sum, accumulates, d[j]);
      else
        continue;
      rounded[j] = add_and_round(sum, accumulates, d[j]);
    }
    std::memcpy(d, rounded, count * sizeof(float));
  }

  static bool are_finite(const double* sums, int count) {
    Range range;
    range.add(sums, count);
    return range.finite;
  }

  // Whether a sum and what it is added to are NaNs, and not the same one.
  static bool meet_other_nans(const double* sums, const float* d, int count) {
    uint64_t found = 0;
    for (int j = 0; j < count; ++j) {
      const double c = d[j];
      found |= (sums[j] != sums[j]) & (c != c) & (bits_of_double(c) != bits_of_double(sums[j]));
    }
    return found;
  }

  // A sum that is infinite, or no number: which NaN it is then must be certain.
  double special_sum(int row, int column, double sum, bool accumulates, float c) {
    if (std::isinf(sum)) return sum;
    if (!is_nan_certain()) sum = asked(row, column);
    if (accumulates && meet_other_nans(&sum, &c, 1)) doubt(OTHER_NANS);
    return sum;
  }

  bool is_nan_certain() {
    if (one_nan_ < 0) one_nan_ = has_one_nan(p_);
    return one_nan_;
  }

  double absolute(int row, int column) const {
    double sum = 0;
    for (int depth = 0; depth < p_.k; ++depth)
      sum += std::fabs(p_.a[row * p_.k + depth] * p_.b[depth * p_.stride + column]);
    return sum;
  }

  // Whether this sum is exact in any order, as in `sums_are_exact`; products have 24 bits at most.
  bool is_exact(int row, int column) const {
    double products[MOST_K];
    for (int depth = 0; depth < p_.k; ++depth)
      products[depth] = p_.a[row * p_.k + depth] * p_.b[depth * p_.stride + column];
    Range range;
    range.add(products, p_.k);
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
      if (ask_product(p_.a, b.data(), asked_.data(), p_.rows, p_.columns, p_.k))
        doubt("Python has no product");
    }
    return asked_[static_cast<size_t>(row) * p_.columns + column];
  }

  const Product& p_;
  int one_nan_ = -1;  // unknown
  int odd_[MOST_COLUMNS], odds_ = 0;
  double columns_[MOST_COLUMNS];
  std::vector<double> asked_;
};

}  // namespace kernelpack
