// Arrays in device memory, and an end to a program whose call fails.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <vector>

inline void ok(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::printf("%s\n", cudaGetErrorString(status));
  std::exit(1);
}

template <class T>
struct Memory {
  T* at;
  int count;
  explicit Memory(int size) : count(size) { ok(cudaMalloc(&at, size * sizeof(T))); }
  explicit Memory(const std::vector<T>& from) : Memory(static_cast<int>(from.size())) {
    ok(cudaMemcpy(at, from.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Memory() { cudaFree(at); }
  std::vector<T> host() const {
    std::vector<T> read(count);
    ok(cudaMemcpy(read.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost));
    return read;
  }
};
