// A bf16 product of row-major matrices, A Bᵀ or A B: its memory, and the check of a small one.
#pragma once
#include "host.cuh"

struct Gemm {
  int m, n, k;
  bool checked, turned;  // whether B's rows are the product's columns
  std::vector<__nv_bfloat16> left, right;
  __nv_bfloat16 *a, *b, *c;

  Gemm(int m, int n, int k, bool checked, bool turned = true)
      : m(m), n(n), k(k), checked(checked), turned(turned) {
    if (checked) {
      left = eighths<__nv_bfloat16>(size_t(m) * k, 1);
      right = eighths<__nv_bfloat16>(size_t(n) * k, 2);
    }
    a = checked ? put(left) : room<__nv_bfloat16>(size_t(m) * k);
    b = checked ? put(right) : room<__nv_bfloat16>(size_t(n) * k);
    c = room<__nv_bfloat16>(size_t(m) * n);
  }

  float element(int row, int column) const {
    float sum = 0;
    for (int i = 0; i < k; ++i) {
      const size_t at = turned ? size_t(column) * k + i : size_t(i) * n + column;
      sum += float(left[size_t(row) * k + i]) * float(right[at]);
    }
    return sum;
  }

  // The exit code: 0 where nothing was to be checked.
  int end() const {
    ok(cudaGetLastError());
    ok(cudaDeviceSynchronize());
    if (!checked) return 0;
    const auto stored = get(c, size_t(m) * n);
    std::vector<float> meant(stored.size());
    for (size_t i = 0; i < meant.size(); ++i) meant[i] = element(int(i / n), int(i % n));
    return compare(meant, {stored.begin(), stored.end()}, 0.01f);
  }
};
