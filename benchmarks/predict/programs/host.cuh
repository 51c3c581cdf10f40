// What the host programs share: device memory, values where they are asked for, an end on an error.
//
// Memory that no kernel's control flow depends on stays as it is: the allocation costs nothing.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

inline void ok(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(2);
}

template <class T>
T* room(size_t count) {
  T* at;
  ok(cudaMalloc(&at, count * sizeof(T)));
  return at;
}

template <class T>
T* put(const std::vector<T>& values) {
  T* at = room<T>(values.size());
  ok(cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return at;
}

template <class T>
std::vector<T> get(const T* at, size_t count) {
  std::vector<T> values(count);
  ok(cudaMemcpy(values.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

// Multiples of 1/8 in [-1, 1]: exact in every type here, and so are short sums of their products.
template <class T>
std::vector<T> eighths(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<T> values(count);
  for (T& value : values) value = T(float(int(engine() % 17) - 8) / 8);
  return values;
}

// Compares with what was meant, prints the first that differs, and gives the exit code.
inline int compare(const std::vector<float>& meant, const std::vector<float>& got,
                   float tolerance) {
  for (size_t i = 0; i < meant.size(); ++i) {
    if (std::fabs(got[i] - meant[i]) <= tolerance * (1 + std::fabs(meant[i]))) continue;
    std::printf("wrong at %zu: %g, not %g\n", i, got[i], meant[i]);
    return 1;
  }
  std::printf("right\n");
  return 0;
}
