// Cycles and rates of one multiprocessor that devices.toml needs: `latencies`, on a Hopper GPU.
//
// Prints a line of JSON a number. Each is the median of many, on a GPU that does nothing else.
#include <tuple>

#include "measure.cuh"

constexpr int LINE = 128;

// A chain of loads, each of whose addresses is what the last one read.
__global__ void chase(const uint32_t* next, uint32_t begin, long long* took) {
  uint32_t at = begin;
  const long long start = clock64();
  for (int i = 0; i < MANY; ++i) at = __ldcg(next + size_t(at) * (LINE / 4));
  for (int i = 0; i < MANY; ++i) took[i] = (clock64() - start + (at == ~0u)) / (i ? 1 : MANY);
}

__global__ void copies(const char* from, size_t apart, int bytes, long long* took) {
  __shared__ alignas(128) char to[8192];
  __shared__ uint64_t barrier;
  init(&barrier, 1);
  for (int i = 0; i < MANY; ++i) {
    const long long start = clock64();
    expect(&barrier, bytes);
    bulk(to, from + i * apart, bytes, &barrier);
    wait(&barrier, i & 1);
    took[i] = clock64() - start;
  }
}

// The first box of a launch, whose tensor map nobody has fetched, and those after it.
__global__ void boxes(const __grid_constant__ CUtensorMap map, long long* took) {
  __shared__ alignas(128) char to[8192];
  __shared__ uint64_t barrier;
  init(&barrier, 1);
  for (int i = 0; i < 4; ++i) {
    const long long start = clock64();
    expect(&barrier, 8192);
    box(to, &map, 64 * i, &barrier);
    wait(&barrier, i & 1);
    took[i] = clock64() - start;
  }
}

// From an arrival to the next instruction of who waits for it.
__global__ void wakes(long long* took, int after) {
  __shared__ uint64_t barrier;
  __shared__ long long arrived;
  if (threadIdx.x == 0) init(&barrier, 1);
  __syncthreads();
  for (int i = 0; i < MANY; ++i) {
    if (threadIdx.x == 0) {
      for (const long long start = clock64(); clock64() - start < after;) {
      }
      arrived = clock64();
      arrive(&barrier);
    } else if (threadIdx.x == 32) {
      wait(&barrier, i & 1);
      const long long end = clock64();
      took[i] = end - arrived;
    }
    __syncthreads();
  }
}

__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ void finish() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

__device__ void product(float (&d)[4], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(a), "l"(b));
}

// Products of a warpgroup, 64 × 8 × 16 each, one after another; then what is waited for.
template <int COUNT>
__global__ void products(long long* took) {
  __shared__ alignas(1024) char tile[4096];
  const uint64_t at = (shared_of(tile) & 0x3FFFF) >> 4 | uint64_t(8) << 16 | uint64_t(16) << 32;
  float d[4] = {};
  for (int i = 0; i < MANY; ++i) {
    __syncthreads();
    const long long start = clock64();
    fence();
#pragma unroll
    for (int n = 0; n < COUNT; ++n) product(d, at, at);
    finish();
    if (threadIdx.x == 0) took[i] = clock64() - start + (d[0] == 3);
  }
}

// mma.sync of four warps, one a scheduler: eight accumulators, or one.
template <int SUMS>
__global__ void warps(long long* took) {
  float d[SUMS][4] = {};
  const uint32_t a = threadIdx.x, b = a + 1;
  for (int i = 0; i < MANY; ++i) {
    const long long start = clock64();
#pragma unroll
    for (int n = 0; n < 64; ++n) {
      float (&x)[4] = d[n % SUMS];
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, "
          "{%5, %5}, {%0, %1, %2, %3};"
          : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
          : "r"(a), "r"(b));
    }
    float sum = 0;
    for (auto& x : d) sum += x[0];
    if (threadIdx.x == 0) took[i] = clock64() - start + (sum == 3);
  }
}

// Stores of 16 bytes a thread to a region that L2 keeps; volatile, so that each is made.
__global__ void stores(uint4* to, long long* took) {
  uint4* own = to + blockIdx.x * (MEGA / 4 / 16);
  __syncthreads();
  const long long start = clock64();
  for (int i = 0; i < 64; ++i)
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(
                     own + (i * 1024 + threadIdx.x) % (MEGA / 4 / 16)),
                 "r"(i));
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) took[blockIdx.x] = clock64() - start;
}

// Copies of 8 KB, eight in flight, from a region that L2 keeps.
__global__ void ingests(const char* from, long long* took) {
  extern __shared__ __align__(128) char to[];
  __shared__ uint64_t barriers[8];
  if (threadIdx.x) return;
  for (auto& barrier : barriers) init(&barrier, 1);
  const long long start = clock64();
  for (int i = 0; i < 136; ++i) {
    if (i >= 8) wait(&barriers[i % 8], (i / 8 - 1) & 1);
    if (i >= 128) continue;
    expect(&barriers[i % 8], 8192);
    bulk(to + i % 8 * 8192, from + size_t(blockIdx.x * 32 + i % 32) * 8192, 8192, &barriers[i % 8]);
  }
  took[blockIdx.x] = clock64() - start;
}

void loads() {
  for (auto [name, lines] : {std::pair{"load_l2", 8192u}, {"load_hbm", 8u << 20}}) {
    std::vector<uint32_t> next(size_t(lines) * (LINE / 4));
    std::mt19937 engine(1);
    std::vector<uint32_t> order(lines);
    for (uint32_t i = 0; i < lines; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), engine);
    for (uint32_t i = 0; i < lines; ++i) next[size_t(order[i]) * 32] = order[(i + 1) % lines];
    const uint32_t* at = put(next);
    if (lines > MEGA) flush();
    for (int i = 0; i < (lines > MEGA ? 1 : 2); ++i) chase<<<1, 1>>>(at, order[0], took);
    ok(cudaDeviceSynchronize());
    say(name, double(get(took, 1)[0]), "cycles");
  }
}

void all_copies() {
  const char* from = room<char>(1024 * MEGA);
  for (auto [bytes, l2, hbm] :
       {std::tuple{128, "copy_l2_128", "copy_hbm_128"}, {8192, "copy_l2_8192", "copy_hbm_8192"}}) {
    flush();
    copies<<<1, 1>>>(from, MEGA + 8192, bytes, took);
    say(hbm, median(), "cycles");
    for (int i = 0; i < 2; ++i) copies<<<1, 1>>>(from, 8192, bytes, took);
    say(l2, median(), "cycles");
  }
  using Encode = decltype(&cuTensorMapEncodeTiled);
  void* encode;
  cudaDriverEntryPointQueryResult found;
  ok(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault,
                                      &found));
  CUtensorMap map;
  const cuuint64_t sizes[] = {64, 4096}, stride[] = {128};
  const cuuint32_t part[] = {64, 64}, ones[] = {1, 1};
  reinterpret_cast<Encode>(encode)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<char*>(from), sizes, stride, part, ones,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  for (int i = 0; i < 3; ++i) boxes<<<1, 1>>>(map, took);
  ok(cudaDeviceSynchronize());
  const auto each = get(took, 4);
  say("box_first", double(each[0]), "cycles");
  say("box_second", double(each[1]), "cycles");
  say("box_third", double(each[2]), "cycles");
}

void tensor_cores() {
  products<1><<<1, 128>>>(took);
  const double one = median();
  products<33><<<1, 128>>>(took);
  say("wgmma_n8_alone", one, "cycles");
  say("wgmma_n8_each", (median() - one) / 32, "cycles");
  warps<8><<<1, 128>>>(took);
  say("mma_each", median() / 64, "cycles");
  warps<1><<<1, 128>>>(took);
  say("mma_dependent", median() / 64, "cycles");
}

void rates() {
  auto* to = room<uint4>(64 * MEGA / 16);
  ok(cudaFuncSetAttribute(ingests, cudaFuncAttributeMaxDynamicSharedMemorySize, 8 * 8192));
  for (int ctas : {1, SMS}) {
    const std::string of = ctas == 1 ? "_alone" : "_all";
    for (int i = 0; i < 3; ++i) stores<<<ctas, 1024>>>(to, took);
    say(("egress" + of).c_str(), MEGA / median(ctas), "bytes a cycle");
    for (int i = 0; i < 3; ++i) ingests<<<ctas, 32, 8 * 8192>>>((const char*)to, took);
    say(("ingest" + of).c_str(), double(MEGA) / median(ctas), "bytes a cycle");
  }
}

int main() {
  took = room<long long>(4096);
  loads();
  all_copies();
  for (int after : {200, 500, 2000, 8000}) {
    wakes<<<1, 64>>>(took, after);
    say(("wake_after_" + std::to_string(after)).c_str(), median(), "cycles");
  }
  tensor_cores();
  rates();
  ok(cudaDeviceSynchronize());
}
