// Matrix products as the Python engine's `fast` rounds them (models/mma.py): D = A B^T + C, summed
// in double, rounded once to single.
//
// Products of the types that tensor cores take are exact in double, and mostly their sums are too:
// then the order of additions does not matter. Where it can, an interval around the sum shows
// whether it matters to the rounded result. Where it does, Python is asked for the sum, as the
// order is that of its BLAS.
#pragma once

#include "rounder.hpp"

namespace kernelpack {

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
