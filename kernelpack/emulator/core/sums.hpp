// Sums of products of two matrices, in double.
#pragma once

#include "ranges.hpp"

namespace kernelpack {

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

}  // namespace kernelpack
