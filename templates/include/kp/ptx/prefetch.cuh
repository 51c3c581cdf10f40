// Prefetch into L2 by the bulk engine: a hint. L2 is coherent for the whole device, so a prefetch
// before `grid_dependency_wait` cannot keep stale data. PTX ISA, "cp.async.bulk.prefetch".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Address and size are multiples of 16 bytes.
__device__ __forceinline__ void prefetch_to_l2(const void* from, uint32_t bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

}  // namespace kp::ptx
