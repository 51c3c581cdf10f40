// Softmax of scores in tensor memory, 64 heads of a CTA by four warps: a thread has head
// threadIdx.x % 64 and half of a block's keys, those of threadIdx.x / 64. Weights go to shared memory
// as the MMA's A, rows of keys.
//
// `Shared` is the kernel's, with
//   CTAS, BLOCK, SCORE_STAGES, WEIGHT_STAGES, SCORES (a column), OUTPUTS (a column), OUTPUT_RUN
//   rows (see rows.cuh), weights[WEIGHT_STAGES][tiles], exchanged[2][128]
//   scores_full[SCORE_STAGES], scores_empty[SCORE_STAGES]       commit; SOFTMAX_WARPS of every CTA
//   weights_full[WEIGHT_STAGES], weights_empty[WEIGHT_STAGES]   SOFTMAX_WARPS of every CTA; commit
// where weights_empty says too that the outputs have them.
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/blackwell/multiplier.cuh>
#include <kp/mla/blackwell/outputs.cuh>
#include <kp/mla/blackwell/rows.cuh>
#include <kp/mla/softmax.cuh>
#include <kp/ptx/barrier.cuh>
#include <kp/ptx/bf16.cuh>
#include <kp/ptx/elect.cuh>
#include <kp/ptx/fence.cuh>
#include <kp/ptx/mbarrier.cuh>
#include <kp/ptx/shared.cuh>
#include <kp/ptx/tcgen05.cuh>
#include <kp/ptx/tensor_rows.cuh>
#include <kp/ring.cuh>
#include <kp/swizzle.cuh>

namespace kp::mla {

constexpr uint32_t CTA_HEADS = 64, SOFTMAX_WARPS = 4, SOFTMAX_THREADS = 32 * SOFTMAX_WARPS;

template <typename Shared>
struct SoftmaxThread {
    static constexpr uint32_t CTAS = Shared::CTAS, KEYS = Shared::BLOCK / 2;

    Shared& shared;
    RunningSoftmax row;
    float scale;      // to units of log2
    uint32_t lanes;   // this warp's of tensor memory, as part of an address
    uint32_t head, half;
    RowsReader<decltype(Shared::rows)> rows;
    Ring<Shared::SCORE_STAGES> scores;
    Ring<Shared::WEIGHT_STAGES> weights, outputs;  // to be filled; last to be added

    __device__ __forceinline__ SoftmaxThread(Shared& shared, float scale)
        : shared(shared), scale(scale), lanes(threadIdx.x / 32 % 4 << 21),
          head(threadIdx.x % CTA_HEADS), half(threadIdx.x / CTA_HEADS % 2), rows(shared.rows) {}

    // The scores of a block out of tensor memory; minus infinity for a key that does not count.
    __device__ __forceinline__ void take_scores(float (&x)[KEYS]) {
        constexpr uint32_t WORDS = KEYS / 32;
        uint32_t counts[WORDS];
        rows.wait();
#pragma unroll
        for (uint32_t i = 0; i < WORDS; ++i) counts[i] = rows.counts(half * WORDS + i);
        ptx::mbarrier_wait(ptx::shared_address(&shared.scores_full[scores.stage]), scores.phase);
        ptx::tcgen05_fence_after();
#pragma unroll
        for (uint32_t i = 0; i < KEYS; i += 32) {
            ptx::tensor_memory_load_row_32(x + i, Shared::SCORES + scores.stage * KEYS + lanes + i);
        }
        ptx::tensor_memory_wait_load();
        ptx::keep(x);
        ptx::tcgen05_fence_before();
        __syncwarp();
        if (ptx::elect_one()) {
            rows.release();
            release_to_multiplier<CTAS>(shared.scores_empty[scores.stage]);
        }
        rows.ring.advance();
        scores.advance();
#pragma unroll
        for (uint32_t i = 0; i < KEYS; ++i) {
            if (!(counts[i / 32] >> i % 32 & 1)) x[i] = minus_infinity();
        }
    }

    // The number that the thread of this head's other half has for this one's. Two buffers: nobody
    // writes the next but one before all have passed the barrier between.
    __device__ __forceinline__ float exchange(float mine, uint32_t buffer) {
        constexpr uint32_t FIRST_BARRIER = 1, PAIR_THREADS = 64;
        shared.exchanged[buffer][threadIdx.x] = mine;
        ptx::barrier_sync(FIRST_BARRIER + threadIdx.x / 32 % 2, PAIR_THREADS);
        return shared.exchanged[buffer][threadIdx.x ^ CTA_HEADS];
    }

    // Wait until the outputs have the weights of the block before.
    __device__ __forceinline__ void wait_outputs() {
        ptx::mbarrier_wait(ptx::shared_address(&shared.weights_empty[outputs.stage]),
                           outputs.phase);
        ptx::tcgen05_fence_after();
    }

    // Weights as bf16 in pairs, and their sum.
    __device__ __forceinline__ float weigh(uint32_t (&pairs)[KEYS / 2], const float (&x)[KEYS]) {
        float sum = 0;
#pragma unroll
        for (uint32_t i = 0; i < KEYS; i += 2) {
            const float first = ptx::exp2_approx(fmaf(x[i], scale, -row.maximum));
            const float second = ptx::exp2_approx(fmaf(x[i + 1], scale, -row.maximum));
            sum += first + second;
            pairs[i / 2] = ptx::pack_bf16(first, second);
        }
        return sum;
    }

    // This thread's part of its head's row of weights, once the tile is free.
    __device__ __forceinline__ void store_weights(const uint32_t (&words)[KEYS / 2]) {
        constexpr uint32_t BYTES = KEYS * 2, CHUNKS = BYTES / 16;
        ptx::mbarrier_wait(ptx::shared_address(&shared.weights_empty[weights.stage]),
                           weights.free_phase());
        const uint32_t begin = half * BYTES;
        const uint32_t tile = ptx::shared_address(&shared.weights[weights.stage][begin / 128]);
#pragma unroll
        for (uint32_t i = 0; i < CHUNKS; ++i) {
            ptx::store_shared(tile + swizzle<128>(head * 128 + begin % 128 + i * 16),
                              make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2],
                                         words[4 * i + 3]));
        }
    }

    __device__ __forceinline__ void block(uint32_t number) {
        float x[KEYS];
        take_scores(x);
        float highest = x[0];
#pragma unroll
        for (uint32_t i = 1; i < KEYS; ++i) highest = fmaxf(highest, x[i]);
        highest = fmaxf(highest, exchange(highest, number % 2)) * scale;
        // Tensor memory is rescaled by whole warps; the warp of the other half decides alike.
        const bool rescales = __any_sync(0xffffffff, row.lags(highest));
        const float factor = row.rescale(highest);
        uint32_t pairs[KEYS / 2];
        row.sum += weigh(pairs, x);
        if (number > 0) {
            if (rescales) {
                wait_outputs();
                rescale_outputs(Shared::OUTPUTS + lanes, factor);
            }
            outputs.advance();
        }
        store_weights(pairs);
        ptx::fence_proxy_async_shared();
        ptx::tcgen05_fence_before();
        __syncwarp();
        if (ptx::elect_one()) publish_to_multiplier<CTAS>(shared.weights_full[weights.stage]);
        weights.advance();
    }

    // All blocks, then the outputs; `first_head` is this CTA's.
    __device__ __forceinline__ void run(uint32_t blocks, uint32_t token, uint32_t first_head,
                                        const Results& results) {
        for (uint32_t number = 0; number < blocks; ++number) block(number);
        row.sum += exchange(row.sum, blocks % 2);
        wait_outputs();
        store_outputs<Shared::OUTPUT_RUN>(results, shared.outputs[threadIdx.x],
                                          Shared::OUTPUTS + lanes, row, token, first_head + head,
                                          half);
    }
};

}  // namespace kp::mla
