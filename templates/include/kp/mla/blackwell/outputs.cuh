// Epilogue of MLA: outputs (O) in TMEM, 64 heads of a CTA. Half of a head's columns are in lane
// `head`, half in lane `head + 64`. A softmax thread rescales and stores COLUMNS of them.
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

constexpr uint32_t WIDTH = 512;                 // of a value: the first columns of a key
constexpr uint32_t OUTPUT_COLUMNS = WIDTH / 2;  // of tensor memory

// A thread's outputs as bf16, staged for the store. One chunk of padding puts the rows of
// neighbouring threads into different banks.
template <uint32_t COLUMNS>
struct OutputRow {
    uint4 chunks[COLUMNS * 2 / 16 + 1];
};

// A call's results; lse, max_logits and sink may be null.
struct Results {
    uint16_t* out;
    float *lse, *max_logits;
    const float* sink;
    uint32_t heads;
    float dead_lse;
};

// `from` is the TMEM address of a thread's outputs, with the lanes of its warp. Every softmax warp
// calls.
template <uint32_t COLUMNS>
__device__ __forceinline__ void rescale_outputs(uint32_t from, float factor) {
#pragma unroll 1
    for (uint32_t column = 0; column < COLUMNS; column += 32) {
        float v[32];
        ptx::tmem_load_row_32(v, from + column);
        ptx::tmem_wait_load();
        ptx::fence_registers(v);
#pragma unroll
        for (uint32_t i = 0; i < 32; ++i) v[i] *= factor;
        ptx::tmem_store_row_32(from + column, v);
    }
    ptx::tmem_wait_store();
}

// Outputs of this thread times `normaliser`, rounded once.
template <uint32_t COLUMNS>
__device__ __forceinline__ void take_outputs(OutputRow<COLUMNS>& to, uint32_t from,
                                             float normaliser) {
#pragma unroll 1
    for (uint32_t column = 0; column < COLUMNS; column += 32) {
        float v[32];
        ptx::tmem_load_row_32(v, from + column);
        ptx::tmem_wait_load();
        ptx::fence_registers(v);
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

// The token, head and columns of a softmax thread's outputs: TMEM columns from `column` on. Runs of
// RUN columns of the two halves alternate.
template <uint32_t RUN>
struct OutputPlace {
    uint32_t token, head, half, column;

    __device__ __forceinline__ uint32_t of(uint32_t own) const {
        const uint32_t at = column + own;
        return (at / RUN * 2 + half) * RUN + at % RUN;
    }
};

// Store a softmax thread's outputs; `row` has the sums of all of its head's weights. A head without
// valid keys gets exact zeros. Heads beyond the call's are not stored.
template <uint32_t RUN, uint32_t COLUMNS, typename Row>
__device__ __forceinline__ void store_outputs(const Results& results, OutputRow<COLUMNS>& buffer,
                                              uint32_t from, const Row& row,
                                              const OutputPlace<RUN>& place) {
    constexpr uint32_t PIECE = RUN < COLUMNS ? RUN : COLUMNS;
    const bool stores = place.head < results.heads;
    const bool has_sink = stores && results.sink != nullptr;
    const float sink = has_sink ? results.sink[place.head] : minus_infinity();
    take_outputs(buffer, from, row.normaliser(sink));
    if (!stores) return;
    if (row.is_dead()) {
        for (uint4& chunk : buffer.chunks) chunk = make_uint4(0, 0, 0, 0);
    }
    const uint64_t at = uint64_t(place.token) * results.heads + place.head;
    ptx::fence_proxy_async_shared();
#pragma unroll
    for (uint32_t own = 0; own < COLUMNS; own += PIECE) {
        ptx::bulk_store(results.out + at * WIDTH + place.of(own),
                        ptx::shared_address(&buffer.chunks[own / 8]), PIECE * sizeof(uint16_t));
    }
    ptx::bulk_commit();
    if (place.half == 0 && place.column == 0) {
        if (results.lse != nullptr) results.lse[at] = row.lse(results.dead_lse);
        if (results.max_logits != nullptr) results.max_logits[at] = row.max_logit();
    }
    ptx::bulk_wait_read();
}

}  // namespace kp::mla
