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

// The compiler keeps accesses of these accumulators on their side of this line. It does not know
// that a wait completes them, or that MMAs under way still change them.
template <uint32_t count>
__device__ __forceinline__ void wgmma_fence_operand(float (&d)[count]) {
    constexpr uint32_t MANY = count / 16 * 16;  // the compiler is faster with many at once
#pragma unroll
    for (uint32_t i = 0; i < MANY; i += 16) {
        asm volatile(""
                     : "+f"(d[i + 0]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]),
                       "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7]),
                       "+f"(d[i + 8]), "+f"(d[i + 9]), "+f"(d[i + 10]), "+f"(d[i + 11]),
                       "+f"(d[i + 12]), "+f"(d[i + 13]), "+f"(d[i + 14]), "+f"(d[i + 15])
                     :
                     : "memory");
    }
#pragma unroll
    for (uint32_t i = MANY; i < count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// The same of an operand in registers: what makes it stays before the wgmma.fence that follows.
template <uint32_t count>
__device__ __forceinline__ void wgmma_fence_operand(uint32_t (&a)[count]) {
#pragma unroll
    for (uint32_t i = 0; i < count; ++i) asm volatile("" : "+r"(a[i])::"memory");
}

// The two halves of a matrix descriptor: where an operand lies, and how.
__device__ __forceinline__ constexpr uint32_t wgmma_descriptor_low(uint32_t address) {
    return (address & 0x3ffff) >> 4;
}

// A K-major operand with rows of 128 swizzled bytes, at a 1024-byte boundary; `eight_rows_bytes` is
// the step from one group of eight rows to the next (0 repeats the same eight).
__device__ __forceinline__ constexpr uint32_t wgmma_descriptor_high(uint32_t eight_rows_bytes) {
    constexpr uint32_t SWIZZLE_128B = 1u << 30;
    return SWIZZLE_128B | eight_rows_bytes >> 4;
}

// An operand whose rows, not K, are contiguous, in panels of 64 rows (128 swizzled bytes) of it:
// `wgmma_descriptor_high` of the step from one group of eight along K to the next, and this in its
// place, the step from one panel to the next.
__device__ __forceinline__ constexpr uint32_t wgmma_descriptor_panels(uint32_t panel_bytes) {
    return panel_bytes >> 4 << 16;
}

}  // namespace kp::ptx
