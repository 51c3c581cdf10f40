// Paged KV cache: encoded indices and virtual rows. The model is
// kernelpack/kernels/kv_operand/storage.py.
//
// Virtual rows number everything from a layer's first row on. The layer's blocks are `stride`
// virtual rows apart, because rows of other layers may lie between. An encoded index, block * page
// + offset, counts only the layer's own rows. A storage without pages is one block.
#pragma once
#include <cuda/std/cstdint>
#include <kp/kv/divider.cuh>

namespace kp::kv {

struct Blocks {
    Divider page;     // rows of a block
    uint32_t count;   // blocks
    uint32_t stride;  // virtual rows from a block to the next

    Blocks() = default;
    __device__ __forceinline__ Blocks(uint32_t page, uint32_t count, uint32_t stride)
        : page(page), count(count), stride(stride) {}

    // The number of virtual rows, up to the end of the last block.
    __device__ __forceinline__ uint32_t num_kv_rows() const {
        return count ? (count - 1) * stride + page.divisor : 0;
    }

    // The number of encoded indices: those below name a row.
    __device__ __forceinline__ uint32_t num_encoded() const { return count * page.divisor; }

    // The virtual row of an encoded index that names a row; -1 for a negative index.
    __device__ __forceinline__ int32_t get_tma_row(int32_t encoded) const {
        const uint32_t block = page.quotient(encoded);
        const uint32_t row = block * stride + (encoded - block * page.divisor);
        return encoded < 0 ? -1 : int32_t(row);
    }

    // The same for any number; -1 if it names no row.
    __device__ __forceinline__ int32_t find_row(int32_t encoded) const {
        return uint32_t(encoded) < num_encoded() ? get_tma_row(encoded) : -1;
    }
};

}  // namespace kp::kv
