// Thrust's algorithms on a device's vectors, held against the standard library.
#include <thrust/device_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

#include <algorithm>
#include <numeric>

#include "check.cuh"

constexpr int COUNT = 2000;
using Device = thrust::device_vector<int>;

std::vector<int> host(const Device& from) {
  std::vector<int> read(from.size());
  thrust::copy(from.begin(), from.end(), read.begin());
  return read;
}

struct Square {
  __host__ __device__ int operator()(int value) const { return (value % 100) * (value % 100); }
};

void transforms(const std::vector<int>& given) {
  Device in(given), out(COUNT);
  thrust::transform(in.begin(), in.end(), out.begin(), Square());
  std::vector<int> want(COUNT);
  std::transform(given.begin(), given.end(), want.begin(), Square());
  expect("squares", want, host(out));
  const int sum = thrust::transform_reduce(in.begin(), in.end(), Square(), 0, thrust::plus<int>());
  expect<int>("their sum", {std::accumulate(want.begin(), want.end(), 0)}, {sum});
}

void scans(const std::vector<int>& given) {
  Device in(given), out(COUNT);
  thrust::exclusive_scan(in.begin(), in.end(), out.begin(), 7);
  std::vector<int> want(COUNT, 7);
  for (int i = 1; i < COUNT; ++i) want[i] = want[i - 1] + given[i - 1];
  expect("a scan", want, host(out));
}

// Keys of a small range: their counts, by a sort and a reduction of equal keys.
void keys(std::vector<int> given) {
  for (int& one : given) one = (one + 32768) % 37;
  Device in(given), found(COUNT), counts(COUNT), ones(COUNT, 1);
  thrust::sort(in.begin(), in.end());
  std::sort(given.begin(), given.end());
  expect("a sort", given, host(in));
  auto end =
      thrust::reduce_by_key(in.begin(), in.end(), ones.begin(), found.begin(), counts.begin());
  counts.resize(end.second - counts.begin());
  std::vector<int> want(37);
  for (int one : given) ++want[one];
  expect("counts of keys", want, host(counts));
  in.erase(thrust::unique(in.begin(), in.end()), in.end());
  given.erase(std::unique(given.begin(), given.end()), given.end());
  expect("different keys", given, host(in));
}

// A comparison of its own: a merge sort in place of a radix sort.
struct ByTens {
  __host__ __device__ bool operator()(int a, int b) const { return a / 10 < b / 10; }
};

void merges(std::vector<int> given) {
  Device in(given);
  thrust::stable_sort(in.begin(), in.end(), ByTens());
  std::stable_sort(given.begin(), given.end(), ByTens());
  expect("a stable sort", given, host(in));
}

int main() {
  const std::vector<int> given = numbers(COUNT, 2);
  transforms(given);
  scans(given);
  keys(given);
  merges(given);
  return verdict();
}
