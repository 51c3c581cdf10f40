// Four MMA fragments, 8 x 8 matrices of 16-bit elements, to shared memory, each transposed. PTX
// ISA, "stmatrix".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Lane 4i + j's elements become rows 2j and 2j + 1 of column i; lane 8m + i gives the address of
// row i of matrix m.
__device__ __forceinline__ void store_transposed(uint32_t row, const uint32_t (&matrices)[4]) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
        "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
        : "memory");
}

}  // namespace kp::ptx
