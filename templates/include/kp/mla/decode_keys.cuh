// Split-KV decode: the keys of a token as positions, which are partitioned among splits. The host's
// model is kernelpack/kernels/mla_decode_attention/positions.py.
//
// Sparse: position p is entry p of the token's list; the second source's entries begin at the next
// multiple of SOURCE_TILE, so that a tile has rows of one source only. Dense: position p is token p
// of the sequence. A split has whole UNITs of positions. Lengths, offsets, entries and tables may
// hold any numbers: a number that names no row becomes -1, and nothing is read outside an array.
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/selection.cuh>

namespace kp::mla::decode {

constexpr uint32_t SOURCE_TILE = 64;
constexpr uint32_t UNIT = 128;

// A KV cache, and the index lists of the tokens if attention is sparse.
struct Source {
    const unsigned char* rows;
    const float* scales;     // of each row, or null
    const int32_t* indices;  // [tokens, indices_stride]; null: dense
    const int32_t* lengths;  // of the lists, for each token or each sequence; may be null
    uint32_t topk, indices_stride;
    uint32_t page, blocks,
        block_stride;  // rows of a block; blocks; rows from one block to the next

    // The row of an encoded index, block * page + offset.
    __device__ __forceinline__ int32_t row(int32_t entry) const {
        const uint32_t e = entry;
        if (e >= blocks * page) return -1;
        if (block_stride == page) return entry;  // saves a division
        return int32_t(e / page * block_stride + e % page);
    }
};

// A token's position in the batch: its sequence, how many of the call's tokens that sequence has,
// and the token's place among them.
struct Standing {
    uint32_t sequence, added, place;
    bool exists;
};

struct Sequences {
    const uint32_t* row_offsets;   // [count + 1], first token of each; null: equal counts
    const int32_t* cache_lengths;  // [count], without the call's tokens; may be null
    const uint32_t* table;         // [count, table_stride], blocks of pages; null: sparse
    uint32_t count, tokens;
    uint32_t pages, table_stride;  // of a sequence

    // Whole warps call it: they compare 32 offsets at a time.
    __device__ __forceinline__ Standing of(uint32_t token) const {
        if (row_offsets == nullptr) {
            const uint32_t each = count > 0 ? tokens / count : 1;
            const uint32_t sequence = token / each;
            return {sequence, each, token - sequence * each, true};
        }
        uint32_t after = 0;  // sequences that begin at the token or before
#pragma unroll 1
        for (uint32_t first = 0; first < count; first += 32) {
            const uint32_t mine = first + threadIdx.x % 32;
            const bool begins = mine < count && row_offsets[mine] <= token;
            after += __popc(__ballot_sync(0xffffffff, begins));
        }
        if (after == 0) return {0, 0, 0, false};
        const uint32_t begin = row_offsets[after - 1], end = row_offsets[after];
        return {after - 1, end - begin, token - begin, begin <= token && token < end};
    }

    // Tokens in the cache plus the first `added` tokens of the call.
    __device__ __forceinline__ uint32_t length(uint32_t sequence, uint32_t added) const {
        const int32_t cached = cache_lengths[sequence];
        return (cached < 0 ? 0 : uint32_t(cached)) + added;
    }
};

__device__ __forceinline__ uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// The positions of one token.
struct Keys {
    uint32_t list;       // sparse: the token's lists; dense: the sequence's line of the table
    uint32_t first_end;  // end of the first source's positions, or of the sequence's
    uint32_t end;        // of all positions

    // Where the second source begins.
    __device__ __forceinline__ uint32_t second() const {
        return (first_end + SOURCE_TILE - 1) / SOURCE_TILE * SOURCE_TILE;
    }

    __device__ __forceinline__ uint32_t units() const { return (end + UNIT - 1) / UNIT; }
};

// The keys of a call.
struct Call {
    Source first, extra;
    Sequences sequences;
    bool lengths_of_sequences;  // whether lists' lengths are per sequence, not per token
    bool causal;
    uint32_t split_units;  // least units of a split

    __device__ __forceinline__ bool is_dense() const { return first.indices == nullptr; }

    // Whole warps call it.
    __device__ __forceinline__ Keys keys(uint32_t token) const {
        return keys(token, sequences.of(token));
    }

    __device__ __forceinline__ Keys keys(uint32_t token, const Standing& at) const {
        Keys found{is_dense() ? at.sequence : token, 0, 0};
        if (!at.exists) return found;
        if (is_dense()) {
            const uint32_t seen = sequences.length(at.sequence, causal ? at.place + 1 : at.added);
            found.first_end = least(seen, sequences.pages * first.page);
            found.end = found.first_end;
            return found;
        }
        const uint32_t of = lengths_of_sequences ? at.sequence : token;
        found.first_end = clamped_length(first.lengths, of, first.topk);
        if (sequences.cache_lengths != nullptr) {
            found.first_end = least(found.first_end, sequences.length(at.sequence, at.added));
        }
        const uint32_t others = clamped_length(extra.lengths, of, extra.topk);
        found.end = others > 0 ? found.second() + others : found.first_end;
        return found;
    }

    __device__ __forceinline__ bool is_second(const Keys& keys, uint32_t position) const {
        return position >= keys.second() && extra.topk > 0;
    }

    // The number at a position: an entry of a list, or a page's block. It is read ahead; `row`
    // needs it later.
    __device__ __forceinline__ int32_t entry(const Keys& keys, uint32_t position) const {
        if (position >= keys.end) return -1;
        if (is_second(keys, position)) {
            return extra
                .indices[uint64_t(keys.list) * extra.indices_stride + position - keys.second()];
        }
        if (position >= keys.first_end) return -1;
        if (!is_dense())
            return first.indices[uint64_t(keys.list) * first.indices_stride + position];
        return sequences
            .table[uint64_t(keys.list) * sequences.table_stride + position / first.page];
    }

    __device__ __forceinline__ int32_t row(const Keys& keys, uint32_t position,
                                           int32_t entry) const {
        if (is_second(keys, position)) return extra.row(entry);
        if (!is_dense()) return first.row(entry);
        if (uint32_t(entry) >= first.blocks) return -1;
        return int32_t(uint32_t(entry) * first.block_stride + position % first.page);
    }
};

// A split's part of a token's units: even shares, but at least `split_units`. With enough splits
// for the longest token, shorter tokens use fewer, and all CTAs do about the same work.
struct Range {
    uint32_t first, count;

    __device__ __forceinline__ Range(const Call& call, const Keys& keys, uint32_t split,
                                     uint32_t splits) {
        const uint32_t units = keys.units();
        const uint32_t each = max((units + splits - 1) / splits, call.split_units);
        first = least(split * each, units);
        count = least(each, units - first);
    }
};

}  // namespace kp::mla::decode
