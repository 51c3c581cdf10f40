// Two chained products on Hopper, made to be broken: tests/mutation seeds faults into it.
//
//   A [m, k], B [64, k], C [64, 64] bf16  ->  D = bf16(A x B^T) x C^T   [m, 64] fp32
//
// m is a multiple of 64 rows, a tile, and k of 64. Each CTA walks the tiles of its column of the
// grid: a warp loads by TMA, a warpgroup multiplies and stores. The first product (scores) is
// rounded in registers and multiplied from there.
#include <kp/ptx/elect.cuh>
#include <kp/ptx/fence.cuh>
#include <kp/ptx/mbarrier.cuh>
#include <kp/ptx/shared.cuh>
#include <kp/ptx/tma.cuh>
#include <kp/ring.cuh>
#include <mutation/bulk_store.cuh>

using namespace kp;
using namespace mutation;

constexpr uint32_t ROWS = 64, COLUMNS = 64, BLOCK_K = 64;
constexpr uint32_t STAGES = 2;
constexpr uint32_t ROW_BYTES = 128;  // of every box: one swizzle span
constexpr uint32_t A_BYTES = ROWS * ROW_BYTES;
constexpr uint32_t B_BYTES = COLUMNS * ROW_BYTES;
constexpr uint32_t C_BYTES = COLUMNS * ROW_BYTES;
constexpr uint32_t HALF = 32;  // columns of D in one store
constexpr uint32_t OUT_BYTES = 16 * ROW_BYTES;

constexpr uint32_t CONSUMER_WARPS = 4, PRODUCER_WARP = 4;
constexpr uint32_t THREADS = 32 * 5;

// A thread's part of 64 x 64: v[4j + 2h + q] = [16 warp + lane / 4 + 8h][8j + 2 (lane % 4) + q].
using Sums = float[32];

struct Shared {
    static constexpr uint32_t STAGE_BYTES = A_BYTES + B_BYTES;
    static constexpr uint32_t C = STAGES * STAGE_BYTES;
    static constexpr uint32_t OUT = C + C_BYTES;
    static constexpr uint32_t BARRIERS = OUT + CONSUMER_WARPS * OUT_BYTES;

    uint32_t base;

    __device__ uint32_t a(uint32_t stage) const { return base + stage * STAGE_BYTES; }
    __device__ uint32_t b(uint32_t stage) const { return a(stage) + A_BYTES; }
    __device__ uint32_t c() const { return base + C; }
    __device__ uint32_t out(uint32_t warp) const { return base + OUT + warp * OUT_BYTES; }
    __device__ uint32_t full(uint32_t stage) const { return base + BARRIERS + 8 * stage; }
    __device__ uint32_t empty(uint32_t stage) const { return full(STAGES + stage); }
    __device__ uint32_t weights() const { return empty(STAGES); }  // C has come
};

// A K-major operand with rows of 128 swizzled bytes, at a 1024-byte boundary.
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
    constexpr uint64_t SWIZZLE_128B = 1ull << 62;
    constexpr uint64_t EIGHT_ROWS_BYTES = uint64_t(1024 >> 4) << 32;
    return SWIZZLE_128B | EIGHT_ROWS_BYTES | (address & 0x3ffff) >> 4;
}

#define SUMS_OF(d)                                                                                 \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),            \
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),    \
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), \
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), \
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define SUMS_NAMES                                                            \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

// d (+)= a * b^T over 16 elements of K; a in shared memory.
__device__ __forceinline__ void wgmma(Sums& d, uint64_t a, uint64_t b, bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SUMS_NAMES
        ", %32, %33, p, 1, 1, 0, 0;\n"
        "}"
        : SUMS_OF(d)
        : "l"(a), "l"(b), "r"(uint32_t(accumulate)));
}

// The same with a in registers.
__device__ __forceinline__ void wgmma(Sums& d, const uint32_t* a, uint64_t b, bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SUMS_NAMES
        ", {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n"
        "}"
        : SUMS_OF(d)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(uint32_t(accumulate)));
}

__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

__device__ __forceinline__ void load(const Shared& shared, const TensorMap& a_map,
                                     const TensorMap& b_map, const TensorMap& c_map, uint32_t tiles,
                                     uint32_t blocks) {
    ptx::mbarrier_arrive_expect_tx(shared.weights(), C_BYTES);
    ptx::tma_load(shared.c(), c_map, shared.weights(), 0, 0);
    Ring<STAGES> ring;
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        for (uint32_t block = 0; block < blocks; ++block) {
            const uint32_t full = shared.full(ring.stage);
            ptx::mbarrier_wait(shared.empty(ring.stage), ring.free_phase());
            ptx::mbarrier_arrive_expect_tx(full, A_BYTES + B_BYTES);
            ptx::tma_load(shared.a(ring.stage), a_map, full, block * BLOCK_K, tile * ROWS);
            ptx::tma_load(shared.b(ring.stage), b_map, full, block * BLOCK_K, 0);
            ring.advance();
        }
    }
}

__device__ __forceinline__ void multiply(Sums& sums, const Shared& shared, Ring<STAGES>& ring,
                                         uint32_t blocks) {
    for (uint32_t block = 0; block < blocks; ++block) {
        ptx::mbarrier_wait(shared.full(ring.stage), ring.phase);
        const uint64_t a = descriptor(shared.a(ring.stage));
        const uint64_t b = descriptor(shared.b(ring.stage));
        wgmma_fence();
        for (uint32_t step = 0; step < 4; ++step) {
            wgmma(sums, a + 2 * step, b + 2 * step, block + step > 0);
        }
        wgmma_commit();
        wgmma_wait();
        if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(shared.empty(ring.stage));
        ring.advance();
    }
}

// sums = bf16(scores) x C^T; the fragment of a product is that of an operand.
__device__ __forceinline__ void multiply_scores(Sums& sums, const Sums& scores,
                                                const Shared& shared) {
    uint32_t packed[16];
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) packed[i] = pack(scores[2 * i], scores[2 * i + 1]);
    const uint64_t c = descriptor(shared.c());
    wgmma_fence();
#pragma unroll
    for (uint32_t step = 0; step < 4; ++step) {
        wgmma(sums, packed + 4 * step, c + 2 * step, step > 0);
    }
    wgmma_commit();
    wgmma_wait();
}

// Put half of this warp's sums where the store's swizzle expects them.
__device__ __forceinline__ void stage(uint32_t out, const Sums& sums, uint32_t half) {
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) {
        const uint32_t row = lane / 4 + i % 2 * 8, byte = i / 2 * 32 + lane % 4 * 8;
        const float* x = &sums[16 * half + 2 * i];
        store_shared(out + row * ROW_BYTES + (byte ^ row % 8 * 16), make_float2(x[0], x[1]));
    }
}

__device__ __forceinline__ void consume(const Shared& shared, const TensorMap& d_map,
                                        uint32_t tiles, uint32_t blocks) {
    const uint32_t warp = threadIdx.x / 32;
    const bool leader = ptx::elect_one();
    Ring<STAGES> ring;
    ptx::mbarrier_wait(shared.weights(), 0);
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        Sums scores, sums;
        multiply(scores, shared, ring, blocks);
        multiply_scores(sums, scores, shared);
#pragma unroll
        for (uint32_t half = 0; half < 2; ++half) {
            if (leader) bulk_wait_read();
            __syncwarp();
            stage(shared.out(warp), sums, half);
            ptx::fence_proxy_async_shared();
            __syncwarp();
            if (leader) {
                tma_store(d_map, shared.out(warp), half * HALF, tile * ROWS + warp * 16);
                bulk_commit();
            }
        }
    }
    if (leader) bulk_wait();
}

__device__ __forceinline__ void init_barriers(const Shared& shared) {
    for (uint32_t stage = 0; stage < STAGES; ++stage) {
        ptx::mbarrier_init(shared.full(stage), 1);
        ptx::mbarrier_init(shared.empty(stage), CONSUMER_WARPS);
    }
    ptx::mbarrier_init(shared.weights(), 1);
    ptx::fence_mbarrier_init();
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_bf16(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
              const __grid_constant__ TensorMap c_map, const __grid_constant__ TensorMap d_map,
              uint32_t tiles, uint32_t blocks) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const Shared shared{ptx::shared_address(memory)};
    const uint32_t warp = threadIdx.x / 32;
    if (threadIdx.x == 0) init_barriers(shared);
    __syncthreads();

    if (warp == PRODUCER_WARP) {
        if (ptx::elect_one()) load(shared, a_map, b_map, c_map, tiles, blocks);
    } else {
        consume(shared, d_map, tiles, blocks);
    }
}
