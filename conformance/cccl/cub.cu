// CUB's collectives of a device, a block and a warp, checked against the standard library.
#include <algorithm>
#include <cub/cub.cuh>
#include <numeric>

#include "check.cuh"

constexpr int COUNT = 3000, THREADS = 128, ITEMS = 4, BINS = 16;

// CUB asks twice: for the size of its workspace, then with it.
template <class Call>
void run(Call call) {
  size_t size = 0;
  ok(call(nullptr, size));
  Memory<char> room(static_cast<int>(size) + 1);
  ok(call(room.at, size));
}

void reductions(const std::vector<int>& given) {
  Memory<int> in(given), sum(1), least(1);
  run([&](void* room, size_t& size) {
    return cub::DeviceReduce::Sum(room, size, in.at, sum.at, COUNT);
  });
  run([&](void* room, size_t& size) {
    return cub::DeviceReduce::Min(room, size, in.at, least.at, COUNT);
  });
  expect("a sum", {std::accumulate(given.begin(), given.end(), 0)}, sum.host());
  expect("a least", {*std::min_element(given.begin(), given.end())}, least.host());
}

void scans(const std::vector<int>& given) {
  Memory<int> in(given), out(COUNT);
  std::vector<int> want(COUNT);
  std::partial_sum(given.begin(), given.end(), want.begin());
  run([&](void* room, size_t& size) {
    return cub::DeviceScan::InclusiveSum(room, size, in.at, out.at, COUNT);
  });
  expect("a scan", want, out.host());
}

void selections(const std::vector<int>& given) {
  Memory<int> in(given), out(COUNT), count(1);
  const auto is_odd = [] __host__ __device__(int value) { return (value & 1) != 0; };
  run([&](void* room, size_t& size) {
    return cub::DeviceSelect::If(room, size, in.at, out.at, count.at, COUNT, is_odd);
  });
  std::vector<int> want, got = out.host();
  std::copy_if(given.begin(), given.end(), std::back_inserter(want), is_odd);
  got.resize(count.host()[0]);
  expect("a selection", want, got);
}

void sorts(const std::vector<int>& given) {
  std::vector<int> places(COUNT), want(given);
  std::iota(places.begin(), places.end(), 0);
  Memory<int> keys(given), values(places), sorted(COUNT), moved(COUNT);
  run([&](void* room, size_t& size) {
    return cub::DeviceRadixSort::SortPairs(room, size, keys.at, sorted.at, values.at, moved.at,
                                           COUNT);
  });
  std::stable_sort(places.begin(), places.end(), [&](int a, int b) { return given[a] < given[b]; });
  std::sort(want.begin(), want.end());
  expect("sorted keys", want, sorted.host());
  expect("values of sorted keys", places, moved.host());
}

void histograms(const std::vector<int>& given) {
  Memory<int> in(given), out(BINS);
  run([&](void* room, size_t& size) {
    return cub::DeviceHistogram::HistogramEven(room, size, in.at, out.at, BINS + 1, -32768, 32768,
                                               COUNT);
  });
  std::vector<int> want(BINS);
  for (int value : given) ++want[(value + 32768) / (65536 / BINS)];
  expect("a histogram", want, out.host());
}

// A block sorts its tile, scans it, and adds up each warp's sums.
__global__ void of_a_block(const int* in, int* sorted, int* scanned, int* total) {
  using Load = cub::BlockLoad<int, THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE>;
  using Sort = cub::BlockRadixSort<int, THREADS, ITEMS>;
  using Scan = cub::BlockScan<int, THREADS>;
  using Store = cub::BlockStore<int, THREADS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  using Warp = cub::WarpReduce<int>;
  __shared__ union {
    Load::TempStorage load;
    Sort::TempStorage sort;
    Scan::TempStorage scan;
    Store::TempStorage store;
    Warp::TempStorage warps[THREADS / 32];
  } room;
  int items[ITEMS], moved[ITEMS];  // a store with a transpose moves what it is given
  const auto copy = [&] {
    for (int i = 0; i < ITEMS; ++i) moved[i] = items[i];
  };
  Load(room.load).Load(in, items);
  __syncthreads();
  Sort(room.sort).Sort(items);
  __syncthreads();
  copy();
  Store(room.store).Store(sorted, moved);
  __syncthreads();
  Scan(room.scan).InclusiveSum(items, items);
  __syncthreads();
  copy();
  Store(room.store).Store(scanned, moved);
  __syncthreads();
  const int sum = Warp(room.warps[threadIdx.x / 32]).Sum(items[0]);
  if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}

void blocks(std::vector<int> given) {
  constexpr int TILE = THREADS * ITEMS;
  given.resize(TILE);
  Memory<int> in(given), sorted(TILE), scanned(TILE), total(std::vector<int>{0});
  of_a_block<<<1, THREADS>>>(in.at, sorted.at, scanned.at, total.at);
  std::vector<int> scan(TILE);
  std::sort(given.begin(), given.end());
  std::partial_sum(given.begin(), given.end(), scan.begin());
  int sum = 0;
  for (int i = 0; i < TILE; i += ITEMS) sum += scan[i];
  expect("a block's sort", given, sorted.host());
  expect("a block's scan", scan, scanned.host());
  expect("the warps' sums", {sum}, total.host());
}

int main() {
  const std::vector<int> given = numbers(COUNT, 1);
  reductions(given);
  scans(given);
  selections(given);
  sorts(given);
  histograms(given);
  blocks(given);
  return verdict();
}
