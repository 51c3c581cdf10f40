// The heads of a CTA: 64 of a token's. The second CTA of a pair (cta_group::2) has the second 64.
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/quantise.cuh>
#include <kp/tensor_map.cuh>

namespace kp::mla {

constexpr uint32_t CTA_HEADS = 64;

// Tiles of a token's heads: a pair covers up to 128 heads, a single CTA `rows`. CTAs of a token are
// neighbours in the grid.
template <uint32_t CTAS>
struct Tiles {
    uint32_t rows, count;

    __device__ __forceinline__ explicit Tiles(uint32_t heads, uint32_t rows = CTA_HEADS)
        : rows(CTAS == 1 ? rows : CTA_HEADS), count(CTAS == 1 ? (heads + rows - 1) / rows : 1) {}

    __device__ __forceinline__ uint32_t first_head() const {
        return (CTAS == 1 ? blockIdx.x % count : blockIdx.x % CTAS) * rows;
    }
};

struct Heads {
    const TensorMap& q_map;
    const float* q_scales;  // [tokens, heads], where Q is e4m3
    uint32_t token, first;
    float scale_log2e;

    // If Q is e4m3: the scale of a head's scores. Heads beyond the call's keep `scale` as it is.
    __device__ __forceinline__ void set_scale(float& scale, uint32_t head, uint32_t heads) const {
        const uint64_t at = uint64_t(token) * heads + first + head;
        if (first + head < heads) scale = with_scale(scale_log2e, q_scales[at]);
    }
};

}  // namespace kp::mla
