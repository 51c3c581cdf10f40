// A step of ThunderKittens' educational ladder on Blackwell: `thunderkittens_level N [check]`.
//
// SOURCE is the step's file, whose main goes by another name here.
#define main main_of_source
#include SOURCE
#undef main

#include "gemm.cuh"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int n = std::atoi(argv[1]);
  const Gemm gemm(n, n, n, argc > 2, false);
  matmul(gemm.a, gemm.b, gemm.c, n);
  return gemm.end();
}
