// Page-table lookup: from a token's position in its sequence to its encoded index, in any storage.
// Sequences, positions, table entries and offsets may be any numbers: -1 stands for a token without
// a row. The model is kernelpack/kernels/kv_operand/lookup.py.
#pragma once
#include <cuda/std/cstdint>
#include <kp/kv/blocks.cuh>

namespace kp::kv {

struct Lookup {
    const uint32_t* table;    // the block of each page of a sequence; null: sequence b has block b
    const uint32_t* offsets;  // first row of each sequence, then the number of rows; null: paged
    uint32_t sequences;
    uint32_t pages;         // of a sequence
    uint32_t table_stride;  // entries from one sequence to the next

    // A position below 0 is returned as it is.
    __device__ __forceinline__ int32_t encode(const Blocks& blocks, uint32_t b, int32_t t) const {
        if (t < 0) return t;
        if (b >= sequences) return -1;
        return offsets ? in_order(blocks, b, t) : in_pages(blocks, b, t);
    }

    __device__ __forceinline__ int32_t in_order(const Blocks& blocks, uint32_t b,
                                                uint32_t t) const {
        const uint32_t first = offsets[b], row = first + t;
        return t < offsets[b + 1] - first && row < blocks.num_encoded() ? int32_t(row) : -1;
    }

    __device__ __forceinline__ int32_t in_pages(const Blocks& blocks, uint32_t b,
                                                uint32_t t) const {
        const uint32_t page = blocks.page.quotient(t), offset = t - page * blocks.page.divisor;
        if (page >= pages) return -1;
        const uint32_t block = table ? table[uint64_t(b) * table_stride + page] : b;
        return block < blocks.count ? int32_t(block * blocks.page.divisor + offset) : -1;
    }
};

}  // namespace kp::kv
