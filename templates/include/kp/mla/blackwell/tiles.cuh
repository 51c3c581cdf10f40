// Tiles of shared memory in the layout of TMA and the tensor cores, and how producers fill them:
// TMA gathers (gather4), TMA boxes, and copies to TMEM (tcgen05.cp).
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/blackwell/caches.cuh>
#include <kp/mla/blackwell/multiplier.cuh>
#include <kp/ptx/cache_policy.cuh>
#include <kp/ptx/tcgen05_group.cuh>
#include <kp/ptx/tma_gather.cuh>
#include <kp/ptx/tma_group.cuh>

namespace kp::mla {

// Heads or keys, 128 swizzled bytes of each.
struct Tile {
    static constexpr uint32_t ROWS = 64, ROW_BYTES = 128;
    unsigned char bytes[ROWS * ROW_BYTES];
};

// Steps of matrix descriptors, whose addresses count 16 bytes: to the next tile; along a row by the
// 32 bytes of one MMA's K; down by `rows` rows.
constexpr uint64_t NEXT_TILE = sizeof(Tile) >> 4, ALONG_ROW = 32 >> 4;
constexpr uint32_t TILE_STEPS = Tile::ROW_BYTES / 32;  // MMAs along K in a tile
__device__ constexpr uint64_t down_rows(uint32_t rows) { return rows * Tile::ROW_BYTES >> 4; }

// Gather 16 rows of COUNT tiles into their rows from `first` on. A tile is HEIGHT of the type Tile,
// on top of each other. `column` counts elements of the map, and a tile has `step` of them.
template <uint32_t CTAS, uint32_t COUNT, uint32_t HEIGHT = 1>
__device__ __forceinline__ void gather(Tile* tiles, const int4 (&rows)[4], uint32_t first,
                                       const TensorMap& map, uint32_t column, uint32_t step,
                                       const uint64_t& full) {
    const uint32_t barrier = of_multiplier<CTAS>(full);
    const uint64_t policy = ptx::evict_last();  // other tokens read the same rows
    const uint32_t to = ptx::shared_address(tiles) + first * Tile::ROW_BYTES;
#pragma unroll
    for (uint32_t tile = 0; tile < COUNT; ++tile) {
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
            ptx::tma_gather4_group<CTAS>(
                to + tile * HEIGHT * sizeof(Tile) + 4 * i * Tile::ROW_BYTES, map, barrier,
                column + tile * step, rows[i], policy);
        }
    }
}

__device__ __forceinline__ bool are_neighbours(const int4 (&rows)[4]) {
    bool are = rows[0].x >= 0;
#pragma unroll
    for (int32_t i = 0; i < 4; ++i) {
        const int32_t first = rows[0].x + 4 * i;
        are &= rows[i].x == first && rows[i].y == first + 1 && rows[i].z == first + 2 &&
               rows[i].w == first + 3;
    }
    return are;
}

// The same, but contiguous rows, such as those of a page, come by one TMA box.
template <uint32_t CTAS, uint32_t COUNT, uint32_t HEIGHT = 1>
__device__ __forceinline__ void gather(Tile* tiles, const int4 (&rows)[4], uint32_t first,
                                       const Maps& maps, uint32_t column, uint32_t step,
                                       const uint64_t& full) {
    if (!are_neighbours(rows)) {
        gather<CTAS, COUNT, HEIGHT>(tiles, rows, first, maps.rows, column, step, full);
        return;
    }
    const uint32_t barrier = of_multiplier<CTAS>(full);
    const uint32_t to = ptx::shared_address(tiles) + first * Tile::ROW_BYTES;
#pragma unroll
    for (uint32_t tile = 0; tile < COUNT; ++tile) {
        ptx::tma_load_group<CTAS>(to + tile * HEIGHT * sizeof(Tile), maps.runs, barrier,
                                  column + tile * step, rows[0].x);
    }
}

// Copy COUNT tiles of Q to TMEM, 16 bytes of a row at a time: lanes r and r + 64 get row r.
template <uint32_t CTAS, uint32_t COUNT>
__device__ __forceinline__ void copy_to_tmem(uint32_t columns, const Tile* tiles) {
    constexpr uint32_t CHUNK = 16, CHUNKS = Tile::ROW_BYTES / CHUNK, CHUNK_COLUMNS = CHUNK / 4;
    const uint64_t rows = ptx::matrix_descriptor(ptx::shared_address(tiles));
    for (uint32_t tile = 0; tile < COUNT; ++tile) {
#pragma unroll
        for (uint32_t chunk = 0; chunk < CHUNKS; ++chunk) {
            ptx::copy_rows_twice_group<CTAS>(columns + (tile * CHUNKS + chunk) * CHUNK_COLUMNS,
                                             rows + tile * NEXT_TILE + (chunk * CHUNK >> 4));
        }
    }
}

}  // namespace kp::mla
