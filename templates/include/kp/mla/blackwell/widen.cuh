// Producer warps that dequantise: rows of e4m3 with block scales become tiles of bf16, multiplied
// in fp32, rounded once. A warp has eight rows at a time, a lane 16 latent columns of each.
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/blackwell/tiles.cuh>
#include <kp/mla/scaled_rows.cuh>
#include <kp/ptx/shared.cuh>
#include <kp/swizzle.cuh>

namespace kp::mla {

// A lane's part of eight rows, in flight from global memory.
template <typename Source>
struct RawRows {
    static constexpr uint32_t ROWS = 8;
    static constexpr bool HAS_ROPE = Source::ROPE_LANES > 0;
    static constexpr uint32_t ROPE_ROWS = HAS_ROPE ? 32 / Source::ROPE_LANES : ROWS;  // of a load
    static constexpr uint32_t ROPE_LOADS = HAS_ROPE ? ROWS / ROPE_ROWS : 1;

    uint4 latent[ROWS], rope[ROPE_LOADS];
    float scale[ROWS], rope_scale[ROPE_LOADS];

    static __device__ uint32_t lane() { return threadIdx.x % 32; }

    // The row whose rope a lane has, and which 16 bytes of it.
    static __device__ uint32_t rope_row(uint32_t load) {
        return load * ROPE_ROWS + lane() / (HAS_ROPE ? Source::ROPE_LANES : 1);
    }
    static __device__ uint32_t rope_chunk() { return lane() % (HAS_ROPE ? Source::ROPE_LANES : 1); }

    // `rows` in shared memory; -1 is a row of zeros.
    __device__ __forceinline__ void load(const unsigned char* kv, const float* kv_scales,
                                         const int32_t* rows) {
#pragma unroll
        for (uint32_t i = 0; i < ROWS; ++i) {
            latent[i] = make_uint4(0, 0, 0, 0);
            scale[i] = 0;
            if (rows[i] < 0) continue;
            const unsigned char* row = kv + uint64_t(rows[i]) * Source::ROW_BYTES;
            latent[i] = reinterpret_cast<const uint4*>(row)[lane()];
            scale[i] = Source::scale(row, scales_of(kv_scales, rows[i]), 16 * lane());
        }
        if constexpr (HAS_ROPE) load_rope(kv, kv_scales, rows);
    }

    __device__ __forceinline__ void load_rope(const unsigned char* kv, const float* kv_scales,
                                              const int32_t* rows) {
#pragma unroll
        for (uint32_t i = 0; i < ROPE_LOADS; ++i) {
            rope[i] = make_uint4(0, 0, 0, 0);
            rope_scale[i] = 0;
            const int32_t number = rows[rope_row(i)];
            if (number < 0) continue;
            const unsigned char* row = kv + uint64_t(number) * Source::ROW_BYTES;
            rope[i] = reinterpret_cast<const uint4*>(row + Source::ROPE_OFFSET)[rope_chunk()];
            if constexpr (!Source::ROPE_IS_BF16) {
                const uint32_t column = Source::LATENT + 16 * rope_chunk();
                rope_scale[i] = Source::scale(row, scales_of(kv_scales, number), column);
            }
        }
    }

    static __device__ const float* scales_of(const float* kv_scales, int32_t row) {
        if constexpr (Source::ROPE_IS_BF16)
            return nullptr;
        else
            return kv_scales + uint64_t(row) * Source::OF_ROW;
    }

    // Store rows from `first` on into the eight tiles of latent columns, and the rope tile after
    // them.
    __device__ __forceinline__ void store(Tile* tiles, uint32_t first) const {
#pragma unroll
        for (uint32_t i = 0; i < ROWS; ++i) {
            uint4 chunks[2];
            widen(chunks, latent[i], scale[i]);
            // The second four of eight lanes begin with the other chunk, so that eight lanes write
            // to all banks.
            const uint32_t turn = lane() / 4 % 2, at = lane() % 4 * 2;
            put(tiles[lane() / 4], first + i, at + turn, turn ? chunks[1] : chunks[0]);
            put(tiles[lane() / 4], first + i, at + (turn ^ 1), turn ? chunks[0] : chunks[1]);
        }
        if constexpr (HAS_ROPE) store_rope(tiles[Source::LATENT / 64], first);
    }

    __device__ __forceinline__ void store_rope(Tile& tile, uint32_t first) const {
#pragma unroll
        for (uint32_t i = 0; i < ROPE_LOADS; ++i) {
            if constexpr (Source::ROPE_IS_BF16) {
                put(tile, first + rope_row(i), rope_chunk(), rope[i]);
            } else {
                uint4 chunks[2];
                widen(chunks, rope[i], rope_scale[i]);
                put(tile, first + rope_row(i), 2 * rope_chunk(), chunks[0]);
                put(tile, first + rope_row(i), 2 * rope_chunk() + 1, chunks[1]);
            }
        }
    }

    static __device__ __forceinline__ void put(Tile& tile, uint32_t row, uint32_t chunk, uint4 v) {
        const uint32_t at = swizzle<128>(row * Tile::ROW_BYTES + chunk * 16);
        ptx::store_shared(ptx::shared_address(&tile) + at, v);
    }
};

}  // namespace kp::mla
