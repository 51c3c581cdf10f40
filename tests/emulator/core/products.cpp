// Doors to the core's matrix products, for test_products.py.
#include "../../../kernelpack/emulator/core/products.hpp"
#include "../../../kernelpack/emulator/core/truncated_sums.hpp"

namespace {

using namespace kernelpack;

Range range_of(const double* values, int count, int fraction) {
  Range range;
  range.fraction = fraction;
  range.add(values, count);
  return range;
}

}  // namespace

extern "C" {

void ask(AskProduct whom) { ask_product = whom; }

// D (m, n) in place, of A (m, k) and B by depth (k, n); 1 where the core doubts. `least`: of fp8's
// exponents, where it adds as Hopper does; 0 for all other types.
int product(const double* a, const double* b, float* d, int m, int n, int k, int fraction,
            int accumulates, int least) {
  const Range left = range_of(a, m * k, fraction), right = range_of(b, n * k, fraction);
  const Product both = product_of(a, left, b, right, m, n, k, n);
  std::vector<float*> rows;
  for (int row = 0; row < m; ++row) rows.push_back(d + row * n);
  try {
    if (least)
      sum_truncated(both, least, least, accumulates, d);
    else
      multiply(both, rows.data(), 1, accumulates);
  } catch (const Doubt&) {
    return 1;
  }
  return 0;
}

}  // extern "C"
