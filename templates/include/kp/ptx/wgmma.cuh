// Warpgroup MMA (wgmma), asynchronous, accumulators in registers: fences, groups and matrix
// descriptors. macros/wgmma.j2 renders the instruction itself for the shape that a kernel needs.
// PTX ISA, "wgmma.mma_async", "Matrix descriptor".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Later wgmmas see earlier writes of registers and shared memory.
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

// A compiler fence: it keeps accesses of these accumulators on their side. The compiler does not
// know that a wait completes them, or that pending MMAs still write them.
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

// The same for an operand in registers: its computation stays before the wgmma.fence that follows.
template <uint32_t count>
__device__ __forceinline__ void wgmma_fence_operand(uint32_t (&a)[count]) {
#pragma unroll
    for (uint32_t i = 0; i < count; ++i) asm volatile("" : "+r"(a[i])::"memory");
}

// The low half of a matrix descriptor: the address.
__device__ __forceinline__ constexpr uint32_t wgmma_descriptor_low(uint32_t address) {
    return (address & 0x3ffff) >> 4;
}

// The high half, the layout: a K-major operand with rows of 128 swizzled bytes, at a 1024-byte
// boundary. `eight_rows_bytes` is the stride from one group of eight rows to the next (0 repeats
// the same eight).
__device__ __forceinline__ constexpr uint32_t wgmma_descriptor_high(uint32_t eight_rows_bytes) {
    constexpr uint32_t SWIZZLE_128B = 1u << 30;
    return SWIZZLE_128B | eight_rows_bytes >> 4;
}

// For an MN-major operand in panels of 64 rows (128 swizzled bytes): the low half's field of the
// leading dimension, which is the step from one panel to the next. `wgmma_descriptor_high` then
// takes the step from one group of eight along K to the next.
__device__ __forceinline__ constexpr uint32_t wgmma_descriptor_panels(uint32_t panel_bytes) {
    return panel_bytes >> 4 << 16;
}

}  // namespace kp::ptx
