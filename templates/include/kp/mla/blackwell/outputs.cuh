// Outputs in tensor memory, 64 heads of a CTA: a thread has a head and half of its columns, those of
// lane % 64 and lane / 64. How they are rescaled, and how they leave.
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/softmax.cuh>
#include <kp/ptx/bf16.cuh>
#include <kp/ptx/bulk.cuh>
#include <kp/ptx/fence.cuh>
#include <kp/ptx/shared.cuh>
#include <kp/ptx/tcgen05.cuh>
#include <kp/ptx/tensor_rows.cuh>

namespace kp::mla {

constexpr uint32_t WIDTH = 512;  // of a value: the first columns of a key
constexpr uint32_t OUTPUT_COLUMNS = WIDTH / 2;  // of a thread

// A thread's outputs as bf16, on their way out; a chunk to spare, so that the rows of neighbouring
// threads lie in other banks.
struct OutputRow {
    uint4 chunks[OUTPUT_COLUMNS * 2 / 16 + 1];
};

// What a call gives back; lse and max_logits may be null, sink too.
struct Results {
    uint16_t* out;
    float *lse, *max_logits;
    const float* sink;
    uint32_t heads;
    float dead_lse;
};

// `columns` is where the outputs begin, with the lanes of this warp. Every warp of softmax calls.
__device__ __forceinline__ void rescale_outputs(uint32_t columns, float factor) {
#pragma unroll 1
    for (uint32_t column = 0; column < OUTPUT_COLUMNS; column += 32) {
        float v[32];
        ptx::tensor_memory_load_row_32(v, columns + column);
        ptx::tensor_memory_wait_load();
        ptx::keep(v);
#pragma unroll
        for (uint32_t i = 0; i < 32; ++i) v[i] *= factor;
        ptx::tensor_memory_store_row_32(columns + column, v);
    }
    ptx::tensor_memory_wait_store();
}

// Outputs of this thread times `normaliser`, rounded once.
__device__ __forceinline__ void take_outputs(OutputRow& to, uint32_t columns, float normaliser) {
#pragma unroll 1
    for (uint32_t column = 0; column < OUTPUT_COLUMNS; column += 32) {
        float v[32];
        ptx::tensor_memory_load_row_32(v, columns + column);
        ptx::tensor_memory_wait_load();
        ptx::keep(v);
#pragma unroll
        for (uint32_t i = 0; i < 32; i += 8) {
            uint32_t pairs[4];
#pragma unroll
            for (uint32_t j = 0; j < 4; ++j) {
                pairs[j] = ptx::pack_bf16(v[i + 2 * j] * normaliser, v[i + 2 * j + 1] * normaliser);
            }
            to.chunks[(column + i) / 8] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
        }
    }
}

// Store what a softmax thread has: `row` sums all of its head's weights. Its columns are runs of `RUN`,
// between which those of the other half lie. A head without a key that counts gives exact zeros; one
// that the call does not have gives nothing.
template <uint32_t RUN>
__device__ __forceinline__ void store_outputs(const Results& results, OutputRow& buffer,
                                              uint32_t columns, const RunningSoftmax& row,
                                              uint32_t token, uint32_t head, uint32_t half) {
    const bool stores = head < results.heads, has_sink = stores && results.sink != nullptr;
    const float normaliser = row.normaliser(has_sink ? results.sink[head] : minus_infinity());
    take_outputs(buffer, columns, normaliser);
    if (!stores) return;
    if (row.is_dead()) {
        for (uint4& chunk : buffer.chunks) chunk = make_uint4(0, 0, 0, 0);
    }
    const uint64_t at = uint64_t(token) * results.heads + head;
    ptx::fence_proxy_async_shared();
#pragma unroll
    for (uint32_t run = 0; run < OUTPUT_COLUMNS / RUN; ++run) {
        ptx::bulk_store(results.out + at * WIDTH + (2 * run + half) * RUN,
                        ptx::shared_address(&buffer.chunks[run * RUN / 8]), RUN * sizeof(uint16_t));
    }
    ptx::bulk_commit();
    if (half == 0) {
        if (results.lse != nullptr) results.lse[at] = row.lse(results.dead_lse);
        if (results.max_logits != nullptr) results.max_logits[at] = row.max_logit();
    }
    ptx::bulk_wait_read();
}

}  // namespace kp::mla
