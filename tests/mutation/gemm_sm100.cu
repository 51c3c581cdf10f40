// Two chained products on Blackwell, made to be broken: tests/mutation seeds faults into it.
//
//   A [m, k], B [64, k], C [64, 64] bf16  ->  D = bf16(A x B^T) x C^T   [m, 64] fp32
//
// m is a multiple of 128 rows, a tile, and k of 64. Each CTA walks the tiles of its column of the
// grid: a warp loads by TMA, one multiplies, four convert and store. The first product (scores) is
// rounded into tensor memory and multiplied from there; the second one takes the scores' place.
#include <kp/ptx/elect.cuh>
#include <kp/ptx/fence.cuh>
#include <kp/ptx/mbarrier.cuh>
#include <kp/ptx/shared.cuh>
#include <kp/ptx/tcgen05.cuh>
#include <kp/ptx/tma.cuh>
#include <kp/ring.cuh>
#include <mutation/bulk_store.cuh>

using namespace kp;
using namespace mutation;

constexpr uint32_t ROWS = 128, COLUMNS = 64, BLOCK_K = 64;
constexpr uint32_t STAGES = 2;
constexpr uint32_t ROW_BYTES = 128;  // of every box: one swizzle span
constexpr uint32_t A_BYTES = ROWS * ROW_BYTES;
constexpr uint32_t B_BYTES = COLUMNS * ROW_BYTES;
constexpr uint32_t C_BYTES = COLUMNS * ROW_BYTES;
constexpr uint32_t HALF = 32;  // columns of D in one store
constexpr uint32_t OUT_BYTES = 32 * ROW_BYTES;

constexpr uint32_t EPILOGUE_WARPS = 4, PRODUCER_WARP = 4, MMA_WARP = 5;
constexpr uint32_t THREADS = 32 * 6;
constexpr uint32_t BF16 = 1;
constexpr uint32_t IDESC = ptx::instruction_descriptor(BF16, ROWS, COLUMNS);
constexpr uint32_t TENSOR_COLUMNS = 128;  // 64 of sums, 32 of packed scores

struct Shared {
    static constexpr uint32_t STAGE_BYTES = A_BYTES + B_BYTES;
    static constexpr uint32_t C = STAGES * STAGE_BYTES;
    static constexpr uint32_t OUT = C + C_BYTES;
    static constexpr uint32_t BARRIERS = OUT + EPILOGUE_WARPS * OUT_BYTES;

    uint32_t base;

    __device__ uint32_t a(uint32_t stage) const { return base + stage * STAGE_BYTES; }
    __device__ uint32_t b(uint32_t stage) const { return a(stage) + A_BYTES; }
    __device__ uint32_t c() const { return base + C; }
    __device__ uint32_t out(uint32_t warp) const { return base + OUT + warp * OUT_BYTES; }
    __device__ uint32_t full(uint32_t stage) const { return base + BARRIERS + 8 * stage; }
    __device__ uint32_t empty(uint32_t stage) const { return full(STAGES + stage); }
    __device__ uint32_t weights() const { return empty(STAGES); }   // C has come
    __device__ uint32_t scores() const { return weights() + 8; }    // the first product is done
    __device__ uint32_t packed() const { return scores() + 8; }     // and is bf16 in tensor memory
    __device__ uint32_t tmem_full() const { return packed() + 8; }  // the second product is done
    __device__ uint32_t tmem_empty() const { return tmem_full() + 8; }  // and in registers
    __device__ uint32_t tmem_address() const { return tmem_empty() + 8; }
};

// accumulator (+)= a * b^T over 16 elements of K; a lies in tensor memory, two elements a column.
__device__ __forceinline__ void mma_from_tensor(uint32_t accumulator, uint32_t a, uint64_t b,
                                                bool accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;\n"
        "}" ::"r"(accumulator),
        "r"(a), "l"(b), "r"(IDESC), "r"(uint32_t(accumulate))
        : "memory");
}

// Eight columns of this warp's 32 lanes: v[j] = [lane][j].
__device__ __forceinline__ void tensor_load(float* v, uint32_t address) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]),
                   "=f"(v[6]), "=f"(v[7])
                 : "r"(address));
}

__device__ __forceinline__ void tensor_store(uint32_t address, const uint32_t* v) {
    asm volatile(
        "tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"r"(
            address),
        "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7])
        : "memory");
}

__device__ __forceinline__ void tensor_wait_store() {
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
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

__device__ __forceinline__ void multiply(const Shared& shared, uint32_t tmem, uint32_t tiles,
                                         uint32_t blocks) {
    const uint32_t sums = tmem, scores = tmem + COLUMNS;
    Ring<STAGES> ring;
    uint32_t phase = 0;
    ptx::mbarrier_wait(shared.weights(), 0);
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        ptx::mbarrier_wait(shared.tmem_empty(), phase ^ 1);
        ptx::tcgen05_fence_after();
        for (uint32_t block = 0; block < blocks; ++block) {
            ptx::mbarrier_wait(shared.full(ring.stage), ring.phase);
            const uint64_t a = ptx::matrix_descriptor(shared.a(ring.stage));
            const uint64_t b = ptx::matrix_descriptor(shared.b(ring.stage));
            for (uint32_t step = 0; step < 4; ++step) {
                ptx::mma_f16(sums, a + 2 * step, b + 2 * step, IDESC, block + step > 0);
            }
            ptx::mma_commit(shared.empty(ring.stage));
            ring.advance();
        }
        ptx::mma_commit(shared.scores());
        ptx::mbarrier_wait(shared.packed(), phase);
        ptx::tcgen05_fence_after();
        const uint64_t c = ptx::matrix_descriptor(shared.c());
        for (uint32_t step = 0; step < 4; ++step) {
            mma_from_tensor(sums, scores + 8 * step, c + 2 * step, step > 0);
        }
        ptx::mma_commit(shared.tmem_full());
        phase ^= 1;
    }
}

// Round this warp's 32 rows of scores into tensor memory.
__device__ __forceinline__ void convert(uint32_t sums, uint32_t scores) {
    for (uint32_t column = 0; column < COLUMNS; column += 16) {
        float v[16];
        tensor_load(v, sums + column);
        tensor_load(v + 8, sums + column + 8);
        ptx::tmem_wait_load();
        ptx::fence_registers(v);
        uint32_t two[8];
#pragma unroll
        for (uint32_t i = 0; i < 8; ++i) two[i] = pack(v[2 * i], v[2 * i + 1]);
        tensor_store(scores + column / 2, two);
    }
    tensor_wait_store();
}

// Take half of this warp's rows into registers.
__device__ __forceinline__ void take(float (&v)[HALF], uint32_t sums) {
#pragma unroll
    for (uint32_t column = 0; column < HALF; column += 8) tensor_load(v + column, sums + column);
    ptx::tmem_wait_load();
    ptx::fence_registers(v);
}

// Put a row of each lane where the store's swizzle expects it.
__device__ __forceinline__ void stage(uint32_t out, const float (&v)[HALF]) {
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (uint32_t chunk = 0; chunk < 8; ++chunk) {
        const float* x = v + 4 * chunk;
        store_shared(out + lane * ROW_BYTES + (chunk ^ lane % 8) * 16,
                     make_float4(x[0], x[1], x[2], x[3]));
    }
}

__device__ __forceinline__ void epilogue(const Shared& shared, uint32_t tmem,
                                         const TensorMap& d_map, uint32_t tiles) {
    const uint32_t warp = threadIdx.x / 32, sums = tmem + (warp << 21);
    const bool leader = ptx::elect_one();
    uint32_t phase = 0;
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        ptx::mbarrier_wait(shared.scores(), phase);
        ptx::tcgen05_fence_after();
        convert(sums, sums + COLUMNS);
        ptx::tcgen05_fence_before();
        if (leader) ptx::mbarrier_arrive(shared.packed());
        ptx::mbarrier_wait(shared.tmem_full(), phase);
        ptx::tcgen05_fence_after();
        for (uint32_t half = 0; half < 2; ++half) {
            float v[HALF];
            take(v, sums + half * HALF);
            if (half == 1) {
                ptx::tcgen05_fence_before();
                if (leader) ptx::mbarrier_arrive(shared.tmem_empty());
            }
            if (leader) bulk_wait_read();
            __syncwarp();
            stage(shared.out(warp), v);
            ptx::fence_proxy_async_shared();
            __syncwarp();
            if (leader) {
                tma_store(d_map, shared.out(warp), half * HALF, tile * ROWS + warp * 32);
                bulk_commit();
            }
        }
        phase ^= 1;
    }
    if (leader) bulk_wait();
}

__device__ __forceinline__ void init_barriers(const Shared& shared) {
    for (uint32_t stage = 0; stage < STAGES; ++stage) {
        ptx::mbarrier_init(shared.full(stage), 1);
        ptx::mbarrier_init(shared.empty(stage), 1);
    }
    ptx::mbarrier_init(shared.weights(), 1);
    ptx::mbarrier_init(shared.scores(), 1);
    ptx::mbarrier_init(shared.packed(), EPILOGUE_WARPS);
    ptx::mbarrier_init(shared.tmem_full(), 1);
    ptx::mbarrier_init(shared.tmem_empty(), EPILOGUE_WARPS);
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
    if (warp == MMA_WARP) {
        ptx::tmem_alloc(shared.tmem_address(), TENSOR_COLUMNS);
        ptx::tmem_relinquish_alloc_permit();
    }
    ptx::tcgen05_fence_before();
    __syncthreads();
    ptx::tcgen05_fence_after();
    const uint32_t tmem = ptx::load_shared_word(shared.tmem_address());

    if (warp == PRODUCER_WARP) {
        if (ptx::elect_one()) load(shared, a_map, b_map, c_map, tiles, blocks);
    } else if (warp == MMA_WARP) {
        if (ptx::elect_one()) multiply(shared, tmem, tiles, blocks);
    } else {
        epilogue(shared, tmem, d_map, tiles);
    }

    ptx::tcgen05_fence_before();
    __syncthreads();
    ptx::tcgen05_fence_after();
    if (warp == MMA_WARP) ptx::tmem_dealloc(tmem, TENSOR_COLUMNS);
}
