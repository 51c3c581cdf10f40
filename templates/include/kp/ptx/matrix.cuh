// MMA fragments, 8 x 8 matrices of 16-bit elements, between registers and shared memory. PTX ISA,
// "stmatrix". Lane 4i + j holds elements 2j and 2j + 1 of row i of each matrix; lane 8m + i gives
// the address of row i of matrix m.
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

__device__ __forceinline__ void store_matrices(uint32_t row, const uint32_t* matrices) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
                 "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
                 : "memory");
}

// The same, each matrix transposed: lane 4i + j's elements become rows 2j and 2j + 1 of column i.
__device__ __forceinline__ void store_transposed(uint32_t row, const uint32_t (&matrices)[2]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(row),
                 "r"(matrices[0]), "r"(matrices[1])
                 : "memory");
}

// One matrix, transposed.
__device__ __forceinline__ void store_transposed(uint32_t row, uint32_t matrix) {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(row),
                 "r"(matrix)
                 : "memory");
}

// Four matrices, each transposed: lane 4i + j gets rows 2j and 2j + 1 of column i. PTX ISA,
// "ldmatrix".
__device__ __forceinline__ void load_transposed(uint32_t (&matrices)[4], uint32_t row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(row)
                 : "memory");
}

}  // namespace kp::ptx
