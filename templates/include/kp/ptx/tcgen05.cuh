// Blackwell's tensor cores (tcgen05, UMMA) and tensor memory (TMEM): 128 lanes x 512 columns of 32
// bits a CTA, addressed by lane << 16 | column. PTX ISA, "TensorCore 5th Generation Family
// Instructions". CTAS is the number of CTAs that multiply together: one (cta_group::1), or a pair
// of neighbours in a cluster (cta_group::2) whose even CTA issues for both. A kernel uses one of
// the two throughout.
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// A whole warp allocates `columns` (a power of two, 32 to 512). The TMEM address is written to
// shared memory.
template <uint32_t CTAS = 1>
__device__ __forceinline__ void tmem_alloc(uint32_t shared, uint32_t columns) {
    asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared),
                 "r"(columns), "n"(CTAS)
                 : "memory");
}

// This CTA allocates no more, so the next CTA on this multiprocessor may.
template <uint32_t CTAS = 1>
__device__ __forceinline__ void tmem_relinquish_alloc_permit() {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(CTAS)
                 : "memory");
}

template <uint32_t CTAS = 1>
__device__ __forceinline__ void tmem_dealloc(uint32_t address, uint32_t columns) {
    asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(address),
                 "r"(columns), "n"(CTAS)
                 : "memory");
}

// The matrix descriptor (shared-memory descriptor) of a K-major operand with rows of 128 swizzled
// bytes, at a 1024-byte boundary.
__device__ __forceinline__ uint64_t matrix_descriptor(uint32_t address) {
    constexpr uint64_t SWIZZLE_128B = 2ull << 61;
    constexpr uint64_t VERSION = 1ull << 46;
    constexpr uint64_t EIGHT_ROWS_BYTES = uint64_t(1024 >> 4) << 32;
    return SWIZZLE_128B | VERSION | EIGHT_ROWS_BYTES | (address & 0x3ffff) >> 4;
}

// The instruction descriptor (idesc) of kind::f16: A and B are fp16 (0) or bf16 (1), both K-major,
// the accumulator is fp32, rows x columns.
constexpr uint32_t instruction_descriptor(uint32_t operand, uint32_t rows, uint32_t columns) {
    constexpr uint32_t FP32_ACCUMULATOR = 1u << 4;
    return FP32_ACCUMULATOR | operand << 7 | operand << 10 | (columns >> 3) << 17 |
           (rows >> 4) << 24;
}

// accumulator (+)= a * b^T over 16 elements of K. One thread issues; a commit signals completion.
__device__ __forceinline__ void mma_f16(uint32_t accumulator, uint64_t a, uint64_t b,
                                        uint32_t idesc, bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n"
        "}" ::"r"(accumulator),
        "l"(a), "l"(b), "r"(idesc), "r"(uint32_t(accumulate))
        : "memory");
}

// One arrival on `barrier` once every earlier MMA of this thread is done.
__device__ __forceinline__ void mma_commit(uint32_t barrier) {
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
        : "memory");
}

// The same, multicast to the mbarrier at the same offset in every CTA of `ranks`, a bit for each
// cluster rank.
template <uint32_t CTAS = 1>
__device__ __forceinline__ void mma_commit_multicast(uint32_t barrier, uint16_t ranks) {
    asm volatile(
        "tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
        "[%0], %1;" ::"r"(barrier),
        "h"(ranks), "n"(CTAS)
        : "memory");
}

// Order this thread's tcgen05 operations with a barrier: call before arriving, and after waiting.
__device__ __forceinline__ void tcgen05_fence_before() {
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

__device__ __forceinline__ void tcgen05_fence_after() {
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// TMEM load: sixteen lanes of the warp's own 32 (warp number % 4 selects these), eight columns from
// `address` on. v[2h + q] = [lane / 4 + 8h][2 * (lane % 4) + q], as in wgmma's fragments.
__device__ __forceinline__ void tmem_load_8(float* v, uint32_t address) {
    asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "r"(address));
}

// The same for sixteen columns: v[4j + 2h + q] = [lane / 4 + 8h][8j + 2 * (lane % 4) + q].
__device__ __forceinline__ void tmem_load_16(float* v, uint32_t address) {
    asm volatile("tcgen05.ld.sync.aligned.16x256b.x2.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]),
                   "=f"(v[6]), "=f"(v[7])
                 : "r"(address));
}

// The warp's own 32 lanes, eight columns from `address` on: a thread gets those of its lane.
__device__ __forceinline__ void tmem_load_row_8(float* v, uint32_t address) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]),
                   "=f"(v[6]), "=f"(v[7])
                 : "r"(address));
}

// Wait until earlier TMEM loads have ended; the TMEM may then be reused. Call `fence_registers` on
// the loaded values afterwards, so that the compiler reads none of them earlier.
__device__ __forceinline__ void tmem_wait_load() {
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

template <uint32_t COUNT>
__device__ __forceinline__ void fence_registers(float (&v)[COUNT]) {
#pragma unroll
    for (uint32_t i = 0; i < COUNT; ++i) asm volatile("" : "+f"(v[i]));
}

}  // namespace kp::ptx
