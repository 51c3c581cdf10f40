// The KV caches of a token's keys: one, or two. Keys come in tiles of 64, and a tile has rows of
// one cache. Tile numbers count from the CTA's first key.
#pragma once
#include <cuda/std/cstdint>
#include <kp/tensor_map.cuh>

namespace kp::mla {

struct Cache {
    const TensorMap& map;
    const unsigned char* rows;
    const float* scales;  // beside rows; may be null

    __device__ __forceinline__ const TensorMap& map_of(uint32_t) const { return map; }
    __device__ __forceinline__ const unsigned char* rows_of(uint32_t) const { return rows; }
    __device__ __forceinline__ const float* scales_of(uint32_t) const { return scales; }
    __device__ __forceinline__ bool has_scales() const { return scales != nullptr; }
};

// Tensor maps of a cache: for a gather of four rows (gather4), and for RUN contiguous rows.
struct Maps {
    static constexpr uint32_t RUN = 16;

    const TensorMap &rows, &runs;
};

struct TwoCaches {
    Cache first, second;
    const TensorMap &first_runs, &second_runs;
    uint32_t boundary;  // the first tile of the second cache; with one cache, after all tiles

    __device__ __forceinline__ Maps map_of(uint32_t tile) const {
        return tile < boundary ? Maps{first.map, first_runs} : Maps{second.map, second_runs};
    }
    __device__ __forceinline__ const unsigned char* rows_of(uint32_t tile) const {
        return tile < boundary ? first.rows : second.rows;
    }
    __device__ __forceinline__ const float* scales_of(uint32_t tile) const {
        return tile < boundary ? first.scales : second.scales;
    }
    __device__ __forceinline__ bool has_scales() const {
        return first.has_scales() || second.has_scales();
    }
};

// For `Rows::select`: stores the scale of a row, or 1 if it has none.
template <typename Caches>
__device__ __forceinline__ auto scales_of_rows(const Caches& caches) {
    return [&caches](auto& scales, uint32_t key, int32_t row, uint32_t tile) {
        const float* of = caches.scales_of(tile);
        scales.set(key, row >= 0 && of != nullptr ? of[row] : 1.0f);
    };
}

}  // namespace kp::mla
