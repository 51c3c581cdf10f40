// A KV operand maps token t of sequence b to its row, in any storage (paged, contiguous, padded or
// ragged KV cache). It is a trivially copyable value that a kernel makes from its parameters and is
// compiled for (`template <class Kv>`). Storages are Paged, Continuous, Padded and Ragged
// (storages.cuh). The interface:
//
// | member | meaning |
// |---|---|
// | Row, Element | the row's format (row.cuh); its elements, as raw bits |
// | row_idx(b, t) | the virtual row of a token that exists |
// | find_row(b, t) | the same for any t; `num_kv_rows` if there is no row |
// | num_kv_rows() | the number of virtual rows; from there on tensor maps read zeros |
// | get_tma_row(encoded) | the virtual row of an encoded index that names one; negative: -1 |
// | find_tma_row(encoded) | the same for any number; -1 if it names no row |
// | extent(b) | tokens that sequence b has room for |
// | cache_length(b) | tokens in the cache, without those that this step adds |
// | max_context_length() | the most tokens of a sequence; not for ragged storages |
// | row_ptr(row) | the bytes of a virtual row: how Hopper gathers |
// | block_paged_ptr<ROWS>(b, t, h, d) | element d of head h; ROWS tokens are contiguous |
// | block_paged_tile<ROWS>(b, t, h, d) | the same with the step from one token to the next |
// | rope_ptr(row) | an MLA row's rope values |
// | is_quantised() | whether there are scales |
// | scales_raw_ptr() | fp32 scales of all rows in a separate array; null: none |
// | scales_block_paged_ptr(b, t, h, d) | the scale of value d of head h |
// | load_scale<WIDTH>(b, t, h, d) | WIDTH scales from there on |
// | populate<BN, STEP, PAIR_CTA>(b, row0, rank, end) | the rows of a tile (tile_rows.cuh) |
//
// For paged storages ROWS divides the page and t is a multiple of it; STEP divides the page. Maps
// are made on the host: kernelpack/kernels/kv_operand/maps.py; tiles are loaded by tile.cuh, and
// rows gathered by gather.cuh.
#pragma once
#include <cuda/std/cstdint>
#include <kp/kv/blocks.cuh>
#include <kp/kv/row.cuh>
#include <kp/kv/tile_rows.cuh>

namespace kp::kv {

// Rows that lie `step` elements apart.
template <class Element>
struct Strip {
    const Element* first;
    uint32_t step;

    __device__ __forceinline__ const Element& at(uint32_t row, uint32_t column) const {
        return first[uint64_t(row) * step + column];
    }
};

template <uint32_t WIDTH>
struct ScaleVector {
    float values[WIDTH];
};

// The base of all storages (CRTP, `Self`). A storage adds the place of a token's row.
template <class Self, class RowFormat>
struct Operand {
    using Row = RowFormat;
    using Element = typename Row::Element;

    const uint8_t* rows;   // virtual row 0
    const float* scales;   // its first scale; null: no array of scales
    uint32_t scale_block;  // values of a head that share a scale
    Blocks blocks;

    __device__ __forceinline__ uint32_t num_kv_rows() const { return blocks.num_kv_rows(); }

    __device__ __forceinline__ int32_t get_tma_row(int32_t encoded) const {
        return blocks.get_tma_row(encoded);
    }

    __device__ __forceinline__ int32_t find_tma_row(int32_t encoded) const {
        return blocks.find_row(encoded);
    }

    __device__ __forceinline__ const uint8_t* row_ptr(int32_t row) const {
        return rows + uint64_t(uint32_t(row)) * Row::BYTES;
    }

    template <uint32_t ROWS>
    __device__ __forceinline__ const Element* block_paged_ptr(uint32_t b, uint32_t t, uint32_t h,
                                                              uint32_t d = 0) const {
        const uint8_t* row = row_ptr(self().row_idx(b, t));
        return reinterpret_cast<const Element*>(row) + h * Row::HEAD_SIZE + d;
    }

    template <uint32_t ROWS>
    __device__ __forceinline__ Strip<Element> block_paged_tile(uint32_t b, uint32_t t, uint32_t h,
                                                               uint32_t d = 0) const {
        return {block_paged_ptr<ROWS>(b, t, h, d), Row::HEADS * Row::HEAD_SIZE};
    }

    __device__ __forceinline__ auto rope_ptr(int32_t row) const {
        static_assert(Row::ROPE > 0, "a row without rope");
        return reinterpret_cast<const typename Row::Rope*>(row_ptr(row) + Row::ROPE_OFFSET);
    }

    __device__ __forceinline__ bool is_quantised() const {
        return Row::INLINE_SCALES > 0 || scales != nullptr;
    }

    __device__ __forceinline__ const float* scales_raw_ptr() const { return scales; }

    // Scales of a head in the separate array.
    __device__ __forceinline__ uint32_t scales_per_head() const {
        return (Row::WIDTH + scale_block - 1) / scale_block;
    }

    __device__ __forceinline__ const float* scales_block_paged_ptr(uint32_t b, uint32_t t,
                                                                   uint32_t h,
                                                                   uint32_t d = 0) const {
        const int32_t row = self().row_idx(b, t);
        if constexpr (Row::INLINE_SCALES > 0) {
            const uint8_t* first = row_ptr(row) + Row::INLINE_OFFSET;
            return reinterpret_cast<const float*>(first) + d / Row::INLINE_BLOCK;
        } else {
            const uint64_t head = uint64_t(uint32_t(row)) * Row::HEADS + h;
            return scales + head * scales_per_head() + d / scale_block;
        }
    }

    template <uint32_t WIDTH>
    __device__ __forceinline__ ScaleVector<WIDTH> load_scale(uint32_t b, uint32_t t, uint32_t h,
                                                             uint32_t d = 0) const {
        const float* first = scales_block_paged_ptr(b, t, h, d);
        ScaleVector<WIDTH> found;
#pragma unroll
        for (uint32_t i = 0; i < WIDTH; ++i) found.values[i] = first[i];
        return found;
    }

    // The rows of BN tokens from `row0` on, a multiple of STEP, that are before `end`. If `end` is
    // not a multiple of STEP, the last run also has rows after the sequence, which the caller
    // masks. In a pair of CTAs that share a tile, each gets the half of its rank.
    template <uint32_t BN, uint32_t STEP, bool PAIR_CTA = false>
    __device__ __forceinline__ auto populate(uint32_t b, uint32_t row0, uint32_t rank,
                                             uint32_t end) const {
        constexpr uint32_t OWN = PAIR_CTA ? BN / 2 : BN;
        constexpr uint32_t RUN = STEP < OWN ? STEP : OWN;
        TileRows<OWN, RUN> tile;
#pragma unroll
        for (uint32_t i = 0; i < OWN / RUN; ++i) {
            const uint32_t t = row0 + (PAIR_CTA ? rank * OWN : 0) + i * RUN;
            tile.first[i] = t < end ? self().find_row(b, t) : int32_t(num_kv_rows());
        }
        return tile;
    }

    template <uint32_t BN, uint32_t STEP, bool PAIR_CTA = false>
    __device__ __forceinline__ auto populate(uint32_t b, uint32_t row0, uint32_t rank = 0) const {
        return populate<BN, STEP, PAIR_CTA>(b, row0, rank, self().extent(b));
    }

    __device__ __forceinline__ const Self& self() const { return static_cast<const Self&>(*this); }
};

}  // namespace kp::kv
