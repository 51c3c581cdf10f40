// Softmax warps: online softmax of the scores S in TMEM, 64 heads of a CTA, by one or two groups of
// four warps (warp-specialised). A thread has a head, half of a block's keys (by the TMEM lanes)
// and its group's part of those. The weights P go to shared memory as operand A: a row of keys a
// head.
//
// `Shared` is the kernel's, with
//   CTAS, BLOCK, GROUPS, SCORE_STAGES, WEIGHT_STAGES, OUTPUT_RUN, and columns SCORES, OUTPUTS
//   FOLDS: whether rows may belong to several tokens; `Keys` then says how many keys each sees
//   Format: Bf16Weights, or E4m3Weights of weights_e4m3.cuh
//   rows (see rows.cuh), weights[WEIGHT_STAGES][tiles], exchanged[2][128 * GROUPS], outputs[...]
//   scores_full[SCORE_STAGES], scores_empty[SCORE_STAGES]       commit; softmax warps of every CTA
//   weights_empty[WEIGHT_STAGES]                                commit: added to the outputs
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/blackwell/heads.cuh>
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

constexpr uint32_t GROUP_WARPS = 4, GROUP_THREADS = 32 * GROUP_WARPS;

// Weights as bf16.
template <Maxima MAXIMA>
struct Bf16Weights {
    using Row = RunningSoftmax<MAXIMA>;
    static constexpr uint32_t BYTES = 2;

    float scale;  // of scores, to units of log2

    template <typename Thread, uint32_t KEYS>
    __device__ __forceinline__ void load(Thread& thread, float (&x)[KEYS], uint32_t column) const {
        thread.load_scores(x, column);
        ptx::tmem_wait_load();
        ptx::fence_registers(x);
    }

    // The highest of a block's scores. `weigh` reads the scores unchanged.
    template <typename Thread, uint32_t KEYS>
    __device__ __forceinline__ float prepare(Thread&, float (&x)[KEYS]) const {
        float highest = x[0];
#pragma unroll
        for (uint32_t i = 1; i < KEYS; ++i) highest = fmaxf(highest, x[i]);
        return highest * scale;
    }

    template <typename Thread, uint32_t KEYS>
    __device__ __forceinline__ void weigh(Thread& thread, uint32_t (&words)[KEYS / 2],
                                          const float (&x)[KEYS]) const {
        float sum = 0, rounded = 0;
#pragma unroll
        for (uint32_t i = 0; i < KEYS; i += 2) {
            const float first = ptx::exp2_approx(fmaf(x[i], scale, -thread.row.maximum));
            const float second = ptx::exp2_approx(fmaf(x[i + 1], scale, -thread.row.maximum));
            sum += first + second;
            words[i / 2] = ptx::pack_bf16(first, second);
            rounded += ptx::low_bf16(words[i / 2]) + ptx::high_bf16(words[i / 2]);
        }
        thread.row.sum += sum;
        thread.row.rounded += rounded;
    }

    // Sum over all threads of a head.
    template <typename Thread>
    __device__ __forceinline__ void finish(Thread& thread) const {
        thread.row.sum = thread.sum_of_head(thread.row.sum);
        thread.row.rounded = thread.sum_of_head(thread.row.rounded);
    }
};

template <typename Shared>
struct SoftmaxThread {
    using Format = typename Shared::Format;
    static constexpr uint32_t CTAS = Shared::CTAS, PARTS = 2 * Shared::GROUPS;  // threads of a head
    static constexpr uint32_t KEYS = Shared::BLOCK / PARTS;
    static constexpr uint32_t COLUMNS = OUTPUT_COLUMNS / Shared::GROUPS;
    static constexpr uint32_t WORDS = KEYS * Format::BYTES / 4;

    Shared& shared;
    Format format;
    typename Format::Row row;
    uint32_t lanes;  // this warp's TMEM lanes, as part of an address
    uint32_t head, half, group;
    uint64_t*
        written;  // arrive here when weights are stored: the multiplier's barrier or a relay's
    uint32_t turn = 0;                // which exchange buffer comes next
    uint32_t begin = 0, limit = ~0u;  // a block's first key; the number of keys that this row sees
    RowsReader<decltype(Shared::rows)> rows;
    Ring<Shared::SCORE_STAGES> scores;
    Ring<Shared::WEIGHT_STAGES> weights, outputs;  // to fill next; last added to the outputs

    __device__ __forceinline__ SoftmaxThread(Shared& shared, const Format& format,
                                             uint64_t* written)
        : shared(shared), format(format), lanes(threadIdx.x / 32 % 4 << 21),
          head(threadIdx.x % CTA_HEADS), half(threadIdx.x / CTA_HEADS % 2),
          group(threadIdx.x / GROUP_THREADS), written(written), rows(shared.rows) {}

    // This thread's first key of a block.
    __device__ __forceinline__ uint32_t first_key() const {
        return half * (Shared::BLOCK / 2) + group * KEYS;
    }

    // Load this thread's keys' columns of TMEM.
    __device__ __forceinline__ void load_scores(float (&x)[KEYS], uint32_t column) {
#pragma unroll
        for (uint32_t i = 0; i < KEYS; i += 32) {
            ptx::tmem_load_row_32(x + i, column + lanes + group * KEYS + i);
        }
    }

    // A bit for each of 32 keys from `key` on: whether this row's token sees it.
    __device__ __forceinline__ uint32_t seen(uint32_t key) const {
        const int32_t left = int32_t(limit - key);
        return left <= 0 ? 0 : left < 32 ? (1u << left) - 1 : ~0u;
    }

    // Load the scores of a block from TMEM; a masked key gets minus infinity.
    __device__ __forceinline__ void take_scores(float (&x)[KEYS]) {
        rows.wait();
        ptx::mbarrier_wait(ptx::shared_address(&shared.scores_full[scores.stage]), scores.phase);
        ptx::tcgen05_fence_after();
        format.load(*this, x, Shared::SCORES + scores.stage * (Shared::BLOCK / 2));
        ptx::tcgen05_fence_before();
        __syncwarp();
        if (ptx::elect_one()) release_to_multiplier<CTAS>(shared.scores_empty[scores.stage]);
        scores.advance();
#pragma unroll
        for (uint32_t word = 0; word < KEYS / 32; ++word) {
            uint32_t counts = rows.counts(first_key() / 32 + word);
            if constexpr (Shared::FOLDS) counts &= seen(begin + first_key() + 32 * word);
#pragma unroll
            for (uint32_t i = 0; i < 32; ++i) {
                if (!(counts >> i & 1)) x[32 * word + i] = minus_infinity();
            }
        }
    }

    // All-gather among the threads of this head. Two buffers take turns: a thread writes the same
    // buffer again only after all have passed the barrier in between.
    __device__ __forceinline__ void exchange(float (&all)[PARTS], float mine) {
        constexpr uint32_t FIRST_BARRIER = 1, THREADS = 32 * PARTS;
        shared.exchanged[turn][threadIdx.x] = mine;
        ptx::barrier_sync(FIRST_BARRIER + threadIdx.x / 32 % 2, THREADS);
#pragma unroll
        for (uint32_t i = 0; i < PARTS; ++i) all[i] = shared.exchanged[turn][head + i * CTA_HEADS];
        turn ^= 1;
    }

    __device__ __forceinline__ float highest_of_head(float mine) {
        float all[PARTS];
        exchange(all, mine);
        float highest = all[0];
#pragma unroll
        for (uint32_t i = 1; i < PARTS; ++i) highest = fmaxf(highest, all[i]);
        return highest;
    }

    __device__ __forceinline__ float sum_of_head(float mine) {
        float all[PARTS];
        exchange(all, mine);
        float sum = all[0];
#pragma unroll
        for (uint32_t i = 1; i < PARTS; ++i) sum += all[i];
        return sum;
    }

    // Wait until the previous block's weights are added to the outputs.
    __device__ __forceinline__ void wait_outputs() {
        ptx::mbarrier_wait(ptx::shared_address(&shared.weights_empty[outputs.stage]),
                           outputs.phase);
        ptx::tcgen05_fence_after();
    }

    __device__ __forceinline__ uint32_t own_outputs() const {
        return Shared::OUTPUTS + lanes + group * COLUMNS;
    }

    // Store this thread's part of its head's row of weights, once the tile is free.
    __device__ __forceinline__ void store_weights(const uint32_t (&words)[WORDS]) {
        ptx::mbarrier_wait(ptx::shared_address(&shared.weights_empty[weights.stage]),
                           weights.free_phase());
        const uint32_t begin = first_key() * Format::BYTES;
        const uint32_t tile = ptx::shared_address(&shared.weights[weights.stage][begin / 128]);
#pragma unroll
        for (uint32_t i = 0; i < WORDS / 4; ++i) {
            ptx::store_shared(
                tile + swizzle<128>(head * 128 + begin % 128 + i * 16),
                make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]));
        }
    }

    __device__ __forceinline__ void block(uint32_t number) {
        float x[KEYS];
        take_scores(x);
        const float highest = highest_of_head(format.prepare(*this, x));
        // Whole warps rescale TMEM. The warps of this head's other threads decide alike.
        const bool rescales = __any_sync(0xffffffff, row.lags(highest));
        const float factor = row.rescale(highest);
        uint32_t words[WORDS];
        format.weigh(*this, words, x);
        __syncwarp();
        if (ptx::elect_one()) rows.release();
        rows.ring.advance();
        begin += Shared::BLOCK;
        if (number > 0) {
            if (rescales) {
                wait_outputs();
                rescale_outputs<COLUMNS>(own_outputs(), factor);
            }
            outputs.advance();
        }
        store_weights(words);
        ptx::fence_proxy_async_shared();
        ptx::tcgen05_fence_before();
        __syncwarp();
        if (ptx::elect_one()) ptx::mbarrier_arrive(ptx::shared_address(&written[weights.stage]));
        weights.advance();
    }

    // All blocks of a token's keys, then the epilogue; `first_head` is this CTA's.
    template <typename Keys, typename Results>
    __device__ __forceinline__ void run(const Keys& keys, uint32_t token, uint32_t first_head,
                                        const Results& results) {
        const uint32_t blocks = keys.blocks_of(Shared::BLOCK);
        if constexpr (Shared::FOLDS) limit = keys.limit_of(head);
        for (uint32_t number = 0; number < blocks; ++number) block(number);
        format.finish(*this);
        row.settle(keys.has_keys(row.is_dead()));
        wait_outputs();
        OutputPlace<Shared::OUTPUT_RUN> place{token, first_head + head, half, group * COLUMNS};
        if constexpr (Shared::FOLDS) {
            place.head = first_head;
            keys.place(head, place.token, place.head);
        }
        store_outputs(results, shared.outputs[threadIdx.x], own_outputs(), row, place);
    }
};

}  // namespace kp::mla
