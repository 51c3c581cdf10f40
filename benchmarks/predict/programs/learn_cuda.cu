// The tcgen05 ladder of gau-nernst/learn-cuda: `learn_cuda VERSION M N K [check]`.
//
// Its sources include torch for one macro; `learn_cuda/` has a header in torch's place.
#include <cstring>

#include "gemm.cuh"

using Matmul = void(const __nv_bfloat16*, const __nv_bfloat16*, __nv_bfloat16*, int, int, int);
Matmul matmul_v0, matmul_v1a, matmul_v1b, matmul_v2a, matmul_v2b, matmul_v3, matmul_v4, matmul_v5,
    matmul_v6, matmul_v7a, matmul_v7b, matmul_v7c;

constexpr struct {
  const char* name;
  Matmul* run;
} VERSIONS[] = {
    {"v0", matmul_v0},   {"v1a", matmul_v1a}, {"v1b", matmul_v1b}, {"v2a", matmul_v2a},
    {"v2b", matmul_v2b}, {"v3", matmul_v3},   {"v4", matmul_v4},   {"v5", matmul_v5},
    {"v6", matmul_v6},   {"v7a", matmul_v7a}, {"v7b", matmul_v7b}, {"v7c", matmul_v7c},
};

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  for (const auto& version : VERSIONS) {
    if (std::strcmp(version.name, argv[1])) continue;
    const Gemm gemm(std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]), argc > 5);
    version.run(gemm.a, gemm.b, gemm.c, gemm.m, gemm.n, gemm.k);
    return gemm.end();
  }
  return 2;
}
