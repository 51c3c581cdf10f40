// Sparse attention's key selection (top-k index list): the cache rows of a token's keys, and which
// entries are valid.
//
// An entry of the list is block * page + offset; its row is block * block_stride + offset. Entries
// may be any numbers: those below 0 or after the last block are masked, and entries from `length`
// on are never read. Masked entries become row -1 before the gather, so that none of their numbers
// can reach a product (0 * NaN is NaN).
#pragma once
#include <cuda/std/cstdint>

namespace kp::mla {

// The number of entries of a token that may be valid. `lengths` may be null; its numbers are
// clamped to 0 ... topk.
__device__ __forceinline__ uint32_t clamped_length(const int32_t* lengths, uint32_t token,
                                                   uint32_t topk) {
    if (lengths == nullptr) return topk;
    const int32_t given = lengths[token];
    return given < 0 ? 0 : uint32_t(given) < topk ? given : topk;
}

struct Selection {
    const int32_t* indices;  // of this token
    uint32_t length;         // entries that may be valid
    uint32_t page, entries;  // rows of a block; block * page of all blocks
    uint32_t block_stride;   // rows from one block to the next

    __device__ __forceinline__ Selection(const int32_t* all_indices, const int32_t* lengths,
                                         uint32_t token, uint32_t topk, uint32_t indices_stride,
                                         uint32_t page, uint32_t blocks, uint32_t block_stride)
        : indices(all_indices + uint64_t(token) * indices_stride),
          length(clamped_length(lengths, token, topk)), page(page), entries(blocks * page),
          block_stride(block_stride) {}

    // The number of blocks of `size` entries: at least one, so that every role has work.
    __device__ __forceinline__ uint32_t blocks_of(uint32_t size) const {
        return length == 0 ? 1 : (length + size - 1) / size;
    }

    __device__ __forceinline__ int32_t entry(uint32_t position) const {
        return position < length ? indices[position] : -1;
    }

    // Whether any entry is valid, if a lane of this warp `wants` to know. All lanes call.
    __device__ __forceinline__ bool has_keys(bool wants) const {
        bool has = false;
        if (!__any_sync(0xffffffff, wants)) return false;
        for (uint32_t i = threadIdx.x % 32; i < length && !has; i += 32) has = row(indices[i]) >= 0;
        return __any_sync(0xffffffff, has);
    }

    // The row of the entry at a position.
    __device__ __forceinline__ int32_t row(int32_t entry, uint32_t) const { return row(entry); }

    __device__ __forceinline__ int32_t row(int32_t entry) const {
        const uint32_t e = entry;
        if (block_stride == page) return e < entries ? entry : -1;  // saves a division
        return e < entries ? int32_t(e / page * block_stride + e % page) : -1;
    }
};

}  // namespace kp::mla
