// What measures: clocks of a multiprocessor, lines of JSON, and the PTX of copies and mbarriers.
#pragma once
#include <cuda.h>

#include <algorithm>

#include "host.cuh"

constexpr int MANY = 256, SMS = 132, LARGE = 200 << 10;
constexpr size_t MEGA = 1 << 20;

__device__ inline uint32_t shared_of(const void* at) {
  return uint32_t(__cvta_generic_to_shared(at));
}

__device__ inline void init(uint64_t* barrier, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_of(barrier)), "r"(count));
  asm volatile("fence.mbarrier_init.release.cluster;");
}

__device__ inline void expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_of(barrier)),
               "r"(bytes));
}

__device__ inline void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_of(barrier)) : "memory");
}

__device__ inline void wait(uint64_t* barrier, int parity) {
  asm volatile(
      "{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra AGAIN; }" ::
          "r"(shared_of(barrier)),
      "r"(parity)
      : "memory");
}

__device__ inline void bulk(void* to, const void* from, int bytes, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_of(to)),
      "l"(from), "r"(bytes), "r"(shared_of(barrier))
      : "memory");
}

__device__ inline void box(void* to, const CUtensorMap* map, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {0, "
      "%2}], [%3];" ::"r"(shared_of(to)),
      "l"(map), "r"(row), "r"(shared_of(barrier))
      : "memory");
}

inline long long* took;

inline void say(const char* name, double value, const char* unit) {
  std::printf("{\"name\": \"%s\", \"value\": %.2f, \"unit\": \"%s\"}\n", name, value, unit);
}

inline double median(int count = MANY) {
  ok(cudaDeviceSynchronize());
  auto values = get(took, count);
  std::sort(values.begin(), values.end());
  return double(values[count / 2]);
}

inline void flush() {
  static char* other = room<char>(512 * MEGA);
  ok(cudaMemset(other, 0, 512 * MEGA));
}
