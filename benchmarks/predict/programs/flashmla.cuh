// Arrays of FlashMLA's programs: zeros, and keys that are scattered over a pool.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

inline void ok(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(1);
}

// An array in device memory, all of it zero.
template <class T>
T* zeros(size_t count) {
  T* at;
  ok(cudaMalloc(&at, count * sizeof(T)));
  ok(cudaMemset(at, 0, count * sizeof(T)));
  return at;
}

template <class T>
T* copied(const std::vector<T>& values) {
  T* at = zeros<T>(values.size());
  ok(cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return at;
}

// Places of a pool of 2^n rows, `topk` for each token: all different, in no order that a cache
// likes. Steps of a random odd number meet each place once.
inline int* scattered(int tokens, int topk, int pool) {
  std::mt19937 random(0);
  std::vector<int> places;
  places.reserve(size_t(tokens) * topk);
  for (int token = 0; token < tokens; ++token) {
    const unsigned step = random() * 2 + 1, first = random();
    for (int i = 0; i < topk; ++i) places.push_back((first + step * unsigned(i)) & (pool - 1));
  }
  return copied(places);
}

inline int number(int argc, char** argv, int place, int otherwise) {
  return place < argc ? std::atoi(argv[place]) : otherwise;
}
