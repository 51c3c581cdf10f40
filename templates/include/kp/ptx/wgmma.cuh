// Warpgroup matrix multiply: what surrounds the instruction, which macros/wgmma.j2 renders for the
// one shape a kernel needs. PTX ISA, "wgmma.mma_async", "Matrix descriptor".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Registers and shared memory written before are seen by the wgmma after it.
__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Wait until at most `pending` of the committed groups are unfinished.
template <int pending>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// The two halves of a matrix descriptor: where an operand lies, and how.
__device__ __forceinline__ constexpr uint32_t wgmma_place(uint32_t address) {
    return (address & 0x3ffff) >> 4;
}

// A K-major operand with rows of 128 swizzled bytes, at a 1024-byte boundary; `eight_rows_bytes` is
// the step from one group of eight rows to the next (0 repeats the same eight).
__device__ __forceinline__ constexpr uint32_t wgmma_layout(uint32_t eight_rows_bytes) {
    constexpr uint32_t SWIZZLE_128B = 1u << 30;
    return SWIZZLE_128B | eight_rows_bytes >> 4;
}

}  // namespace kp::ptx
