// Persistent tile scheduler of a grouped GEMM, for clusters: grid (split, multicast * clusters),
// cluster (split, multicast), any of them 1.
//   split      CTAs along x each take a K slice of the same tile (split-K).
//   multicast  CTAs along y take neighbouring token tiles of a group and the same columns, so that
//              TMA multicast loads the weights once for all of them.
// Every cluster is persistent: it walks the tiles of all groups (see grouped_tiles.cuh).
#pragma once
#include <kp/grouped_tiles.cuh>
#include <kp/ptx/cluster.cuh>

namespace kp {

// The layout of the K slices: each is a run of blocks, or every split-th block. Where a CTA loads
// short pieces of rows, it is faster if its neighbour loads the next piece at the same time.
enum class Slices { runs, interleaved };

// A CTA's cluster coordinates and its work partition: blocks of K from first_block on, every
// step-th.
struct Position {
    uint32_t split, multicast, slice, multicast_rank, first_block, last_block, step;

    __device__ __forceinline__ Position(ptx::ClusterPosition cluster, uint32_t blocks,
                                        Slices slices = Slices::runs)
        : split(cluster.width), multicast(cluster.height), slice(cluster.x),
          multicast_rank(cluster.y), first_block(blocks * slice / split),
          last_block(blocks * (slice + 1) / split), step(1) {
        if (slices == Slices::runs) return;
        first_block = slice;
        last_block = blocks;
        step = split;
    }

    __device__ __forceinline__ bool has_blocks() const { return first_block < last_block; }

    __device__ __forceinline__ uint32_t blocks() const {
        return has_blocks() ? (last_block - first_block + step - 1) / step : 0;
    }

    template <typename Visit>
    __device__ __forceinline__ void for_each_block(Visit visit) const {
        for (uint32_t block = first_block; block < last_block; block += step) visit(block);
    }

    // The multicast CTAs take turns: does this one issue the multicast load of this block?
    __device__ __forceinline__ bool has_turn(uint32_t block) const {
        return block / step % multicast == multicast_rank;
    }

    // The cluster rank of multicast CTA number `other` of this K slice.
    __device__ __forceinline__ uint32_t cluster_rank(uint32_t other) const {
        return slice + other * split;
    }

    __device__ __forceinline__ uint16_t multicast_mask() const {
        uint32_t ranks = 0;
        for (uint32_t other = 0; other < multicast; ++other) ranks |= 1u << cluster_rank(other);
        return ranks;
    }
};

// One CTA's rows of the cluster's tile.
template <uint32_t TOKENS, uint32_t FLAT>
struct ClusterTile {
    uint32_t row, rows;  // rows may be 0
    uint32_t flat;       // first column of the flat result
    int32_t expert;

    ClusterTile() = default;

    __device__ __forceinline__ ClusterTile(const GroupTile& tile, uint32_t multicast_rank)
        : row(tile.row + multicast_rank * TOKENS),
          rows(row < tile.row_end ? tile.row_end - row : 0), flat(tile.column_tile * FLAT),
          expert(tile.expert) {
        rows = rows < TOKENS ? rows : TOKENS;
    }

    __device__ __forceinline__ bool operator==(const ClusterTile& other) const {
        return row == other.row && rows == other.rows && flat == other.flat &&
               expert == other.expert;
    }
};

// The first tile of this CTA's cluster; without one, a tile of no rows and expert -1. `tiles` is a
// copy, because GroupedTiles finds each number only once.
template <typename Tile>
__device__ __forceinline__ Tile first_tile(GroupedTiles tiles, const Position& position) {
    GroupTile none = {};
    none.expert = -1;
    GroupTile found;
    const bool is_there = tiles.find(blockIdx.y / position.multicast, found);
    return Tile(is_there ? found : none, position.multicast_rank);
}

// Call visit(tile) for every tile of this CTA's cluster. All lanes of a warp call.
template <typename Tile, typename Visit>
__device__ __forceinline__ void for_each_tile(GroupedTiles& tiles, const Position& position,
                                              Visit visit) {
    const uint32_t clusters = gridDim.y / position.multicast;
    GroupTile tile;
    for (uint32_t number = blockIdx.y / position.multicast; tiles.find(number, tile);
         number += clusters) {
        visit(Tile(tile, position.multicast_rank));
    }
}

}  // namespace kp
