// The four storages of a KV cache: paged, contiguous, padded, ragged. operand.cuh has their
// interface.
#pragma once
#include <cuda/std/cstdint>
#include <kp/kv/operand.cuh>

namespace kp::kv {

// Paged KV cache: blocks of rows anywhere in memory, found by a page table.
template <class RowFormat>
struct Paged : Operand<Paged<RowFormat>, RowFormat> {
    const uint32_t* table;  // [sequences, pages]: block of each page; anything after the last page
    uint32_t pages;         // of a sequence in the table
    const uint32_t* lengths;
    uint32_t longest;

    __device__ __forceinline__ int32_t row_idx(uint32_t b, uint32_t t) const {
        const uint32_t page = this->blocks.page.quotient(t);
        return in_block(table[uint64_t(b) * pages + page], t - page * this->blocks.page.divisor);
    }

    __device__ __forceinline__ int32_t find_row(uint32_t b, uint32_t t) const {
        const uint32_t page = this->blocks.page.quotient(t);
        if (page >= pages) return this->num_kv_rows();
        const uint32_t block = table[uint64_t(b) * pages + page];
        if (block >= this->blocks.count) return this->num_kv_rows();
        return in_block(block, t - page * this->blocks.page.divisor);
    }

    __device__ __forceinline__ uint32_t extent(uint32_t) const {
        return pages * this->blocks.page.divisor;
    }
    __device__ __forceinline__ uint32_t cache_length(uint32_t b) const { return lengths[b]; }
    __device__ __forceinline__ uint32_t max_context_length() const { return longest; }

    __device__ __forceinline__ int32_t in_block(uint32_t block, uint32_t offset) const {
        return int32_t(block * this->blocks.stride + offset);
    }
};

// A slot of adjacent rows for each sequence: blocks as long as the longest sequence.
template <class RowFormat>
struct Continuous : Operand<Continuous<RowFormat>, RowFormat> {
    const uint32_t* table;  // [sequences]: slot of each; null: sequence b has slot b
    const uint32_t* lengths;

    __device__ __forceinline__ uint32_t slot(uint32_t b) const { return table ? table[b] : b; }

    __device__ __forceinline__ int32_t row_idx(uint32_t b, uint32_t t) const {
        return int32_t(slot(b) * this->blocks.stride + t);
    }

    __device__ __forceinline__ int32_t find_row(uint32_t b, uint32_t t) const {
        const uint32_t found = t < extent(b) ? slot(b) : this->blocks.count;
        if (found >= this->blocks.count) return this->num_kv_rows();
        return int32_t(found * this->blocks.stride + t);
    }

    __device__ __forceinline__ uint32_t extent(uint32_t) const { return this->blocks.page.divisor; }
    __device__ __forceinline__ uint32_t cache_length(uint32_t b) const { return lengths[b]; }
    __device__ __forceinline__ uint32_t max_context_length() const { return extent(0); }
};

// Sequences of one length, `stride` virtual rows apart.
template <class RowFormat>
struct Padded : Operand<Padded<RowFormat>, RowFormat> {
    uint32_t sequences, length, stride;

    __device__ __forceinline__ int32_t row_idx(uint32_t b, uint32_t t) const {
        return int32_t(b * stride + t);
    }

    __device__ __forceinline__ int32_t find_row(uint32_t b, uint32_t t) const {
        return b < sequences && t < length ? row_idx(b, t) : int32_t(this->num_kv_rows());
    }

    __device__ __forceinline__ uint32_t extent(uint32_t) const { return length; }
    __device__ __forceinline__ uint32_t cache_length(uint32_t) const { return length; }
    __device__ __forceinline__ uint32_t max_context_length() const { return length; }
};

// Sequences one after another.
template <class RowFormat>
struct Ragged : Operand<Ragged<RowFormat>, RowFormat> {
    const uint32_t* offsets;  // [sequences + 1]: first row of each, then the number of rows

    __device__ __forceinline__ int32_t row_idx(uint32_t b, uint32_t t) const {
        return int32_t(offsets[b] + t);
    }

    __device__ __forceinline__ int32_t find_row(uint32_t b, uint32_t t) const {
        return t < extent(b) ? row_idx(b, t) : int32_t(this->num_kv_rows());
    }

    __device__ __forceinline__ uint32_t extent(uint32_t b) const {
        return offsets[b + 1] - offsets[b];
    }
    __device__ __forceinline__ uint32_t cache_length(uint32_t b) const { return extent(b); }
};

static_assert(__is_trivially_copyable(Paged<Bf16_576>), "values, whatever the format");
static_assert(__is_trivially_copyable(Continuous<Bf16_576>), "likewise");
static_assert(__is_trivially_copyable(Padded<Bf16_576>), "likewise");
static_assert(__is_trivially_copyable(Ragged<Bf16_576>), "likewise");

// The scales of a storage as its data, for loaders that only read keys.
template <class Storage>
struct ScalesAsData {
    using Element = float;

    Storage storage;

    __device__ __forceinline__ int32_t row_idx(uint32_t b, uint32_t t) const {
        return storage.row_idx(b, t);
    }
    __device__ __forceinline__ uint32_t num_kv_rows() const { return storage.num_kv_rows(); }
    __device__ __forceinline__ uint32_t cache_length(uint32_t b) const {
        return storage.cache_length(b);
    }
    template <uint32_t ROWS>
    __device__ __forceinline__ const float* block_paged_ptr(uint32_t b, uint32_t t, uint32_t h,
                                                            uint32_t d = 0) const {
        return storage.scales_block_paged_ptr(b, t, h, d);
    }
};

}  // namespace kp::kv
