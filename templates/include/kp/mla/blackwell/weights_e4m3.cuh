// Softmax warps of FP8 attention: the weights P are e4m3, and the same threads quantise Q first.
// See weights.cuh; `Shared` also has
//   ROPE: whether rope has its own accumulators, BLOCK / 2 columns after the scores'
//   QUANTISES_ROPE: whether rope is among the quantised columns
//   rows with RowScales; queries[tiles], bf16; queries_latent[4], queries_rope
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/blackwell/weights.cuh>
#include <kp/mla/quantise.cuh>
#include <kp/mla/softmax_e4m3.cuh>
#include <kp/ptx/e4m3.cuh>

namespace kp::mla {

template <bool ROPE>
struct E4m3Weights {
    using Row = NarrowSoftmax;
    static constexpr uint32_t BYTES = 1;

    float scale;  // of scores, to units of log2; it includes the head's scale of Q
    bool scaled;  // whether rows have scales

    template <typename Thread, uint32_t KEYS>
    __device__ __forceinline__ void load(Thread& thread, float (&x)[KEYS], uint32_t column) const {
        thread.load_scores(x, column);
        if constexpr (ROPE) {
            float rope[KEYS];
            thread.load_scores(rope, column + KEYS * Thread::PARTS / 2);
            ptx::tmem_wait_load();
            ptx::fence_registers(x);
            ptx::fence_registers(rope);
#pragma unroll
            for (uint32_t i = 0; i < KEYS; ++i) x[i] += rope[i];
        } else {
            ptx::tmem_wait_load();
            ptx::fence_registers(x);
        }
    }

    // Scores become y, log2 of the weights before the maximum is subtracted. Returns the highest y.
    template <typename Thread, uint32_t KEYS>
    __device__ __forceinline__ float prepare(Thread& thread, float (&x)[KEYS]) const {
        float highest = minus_infinity(), highest_y = minus_infinity();
        if (scaled) {
            const auto& scales = thread.rows.scales();
#pragma unroll
            for (uint32_t i = 0; i < KEYS; i += 4) {
                const uint32_t key = thread.first_key() + i;
                const float4 s = *reinterpret_cast<const float4*>(&scales.scale[key]);
                const float4 log2 = *reinterpret_cast<const float4*>(&scales.log2[key]);
                const float of[4] = {s.x, s.y, s.z, s.w}, add[4] = {log2.x, log2.y, log2.z, log2.w};
#pragma unroll
                for (uint32_t j = 0; j < 4; ++j) {
                    const float score = x[i + j] * scale * of[j];
                    highest = fmaxf(highest, score);
                    x[i + j] = score + add[j];
                    highest_y = fmaxf(highest_y, x[i + j]);
                }
            }
        } else {
#pragma unroll
            for (uint32_t i = 0; i < KEYS; ++i) {
                x[i] *= scale;
                highest = fmaxf(highest, x[i]);
            }
            highest_y = highest;
        }
        thread.row.highest = fmaxf(thread.row.highest, highest);
        return highest_y;
    }

    template <typename Thread, uint32_t KEYS>
    __device__ __forceinline__ void weigh(Thread& thread, uint32_t (&words)[KEYS / 4],
                                          const float (&y)[KEYS]) const {
        const float offset = thread.row.offset();
        float sum = 0, weights = 0, rounded = 0;
#pragma unroll
        for (uint32_t i = 0; i < KEYS; i += 4) {
            float w[4];
#pragma unroll
            for (uint32_t j = 0; j < 4; ++j) w[j] = ptx::exp2_approx(y[i + j] + offset);
            words[i / 4] = ptx::pack_e4m3(w[0] + dither<KEYS>(i), w[1] + dither<KEYS>(i + 1),
                                          w[2] + dither<KEYS>(i + 2), w[3] + dither<KEYS>(i + 3));
            const float4 r = ptx::unpack_e4m3(words[i / 4]);
            weights += w[0] + w[1] + (w[2] + w[3]);
            rounded += r.x + r.y + (r.z + r.w);
            if (scaled) {
                const float4 inverse = *reinterpret_cast<const float4*>(
                    &thread.rows.scales().inverse[thread.first_key() + i]);
                sum += w[0] * inverse.x + w[1] * inverse.y + w[2] * inverse.z + w[3] * inverse.w;
            }
        }
        thread.row.sum += scaled ? sum : weights;
        thread.row.weights += weights;
        thread.row.rounded += rounded;
    }

    template <typename Thread>
    __device__ __forceinline__ void finish(Thread& thread) const {
        thread.row.sum = thread.sum_of_head(thread.row.sum);
        thread.row.weights = thread.sum_of_head(thread.row.weights);
        thread.row.rounded = thread.sum_of_head(thread.row.rounded);
        thread.row.highest = thread.highest_of_head(thread.row.highest);
    }
};

// Quantise this thread's quarter of its head's columns of Q. Returns the head's scale. Four threads
// have a head: a quarter of the latent columns is a row of a tile of e4m3.
template <typename Shared>
__device__ __forceinline__ float quantise_queries(SoftmaxThread<Shared>& thread) {
    constexpr uint32_t LATENT_CHUNKS = 16, ROPE_CHUNKS = 2, CHUNKS = 8;  // of 16 bytes; a row's
    static_assert(SoftmaxThread<Shared>::PARTS == 4, "a thread has a quarter");
    Shared& shared = thread.shared;
    const uint32_t head = thread.head, quarter = threadIdx.x / CTA_HEADS;
    const auto chunk = [&](uint32_t number) {
        const uint32_t tile = ptx::shared_address(&shared.queries[number / CHUNKS]);
        return tile + swizzle<128>(head * 128 + number % CHUNKS * 16);
    };
    const uint32_t first = quarter * LATENT_CHUNKS;
    const uint32_t first_rope = 4 * LATENT_CHUNKS + quarter * ROPE_CHUNKS;
    float largest = 0;
#pragma unroll
    for (uint32_t i = 0; i < LATENT_CHUNKS; ++i) {
        largest = largest_magnitude(largest, ptx::load_shared_words(chunk(first + i)));
    }
    if constexpr (Shared::QUANTISES_ROPE) {
#pragma unroll
        for (uint32_t i = 0; i < ROPE_CHUNKS; ++i) {
            largest = largest_magnitude(largest, ptx::load_shared_words(chunk(first_rope + i)));
        }
    }
    const QueryScale scale(thread.highest_of_head(largest));
    const auto narrowed = [&](uint32_t number) {
        const uint4 a = ptx::load_shared_words(chunk(number));
        const uint4 b = ptx::load_shared_words(chunk(number + 1));
        return make_uint4(narrow(a.x, a.y, scale.factor), narrow(a.z, a.w, scale.factor),
                          narrow(b.x, b.y, scale.factor), narrow(b.z, b.w, scale.factor));
    };
    const uint32_t latent = ptx::shared_address(&shared.queries_latent[quarter]);
#pragma unroll
    for (uint32_t i = 0; i < LATENT_CHUNKS / 2; ++i) {
        ptx::store_shared(latent + swizzle<128>(head * 128 + i * 16), narrowed(first + 2 * i));
    }
    if constexpr (Shared::QUANTISES_ROPE) {
        const uint32_t rope = ptx::shared_address(&shared.queries_rope);
        ptx::store_shared(rope + swizzle<128>(head * 128 + quarter * 16), narrowed(first_rope));
    } else if constexpr (Shared::ROPE) {
        const uint32_t rope = ptx::shared_address(&shared.queries_rope);
#pragma unroll
        for (uint32_t i = 0; i < ROPE_CHUNKS; ++i) {
            const uint4 v = ptx::load_shared_words(chunk(first_rope + i));
            ptx::store_shared(rope + swizzle<128>(head * 128 + (quarter * ROPE_CHUNKS + i) * 16),
                              make_uint4(multiply(v.x, scale.factor), multiply(v.y, scale.factor),
                                         multiply(v.z, scale.factor), multiply(v.w, scale.factor)));
        }
    }
    return scale.scale;
}

}  // namespace kp::mla
