// ThunderKittens' bf16 product with the tile that its own main gives 4096: `thunderkittens N
// [check]`.
//
// SOURCE is its file, whose main goes by another name here.
#define main main_of_source
#include SOURCE
#undef main

#include "gemm.cuh"

using Config = config<256, 256, 64, 4, false, 4, 8>;

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int n = std::atoi(argv[1]);
  const Gemm gemm(n, n, n, argc > 2);
  const auto size = size_t(n);
  typename globals<Config>::a_gl a{gemm.a, nullptr, nullptr, size, size};
  typename globals<Config>::b_gl b{gemm.b, nullptr, nullptr, size, size};
  typename globals<Config>::d_gl d{gemm.c, nullptr, nullptr, size, size};
  globals<Config> all{a, b, d};
  const int shared = all.dynamic_shared_memory();
  ok(cudaFuncSetAttribute(kernel<Config>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  LaunchConfig<true, true> launch(all.grid(), all.block(), shared, 0, Config::CLUSTER_SIZE);
  ok(cudaLaunchKernelEx(launch, kernel<Config>, all));
  return gemm.end();
}
