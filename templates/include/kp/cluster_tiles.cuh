// How the CTAs of a cluster share the tiles of a grouped product: grid (split, sharers * clusters),
// cluster (split, sharers), any of them 1.
//   split CTAs along x each take a slice of K of the same tile;
//   sharers CTAs along y take neighbouring token tiles of a group, and the same columns.
// Every cluster walks the tiles of all groups; see grouped_tiles.cuh.
#pragma once
#include <kp/grouped_tiles.cuh>
#include <kp/ptx/cluster.cuh>

namespace kp {

// What a CTA is within its cluster, and its blocks of K.
struct Position {
    uint32_t split, sharers, slice, sharer, first_block, last_block;

    __device__ __forceinline__ Position(ptx::ClusterPosition cluster, uint32_t blocks)
        : split(cluster.width), sharers(cluster.height), slice(cluster.x), sharer(cluster.y),
          first_block(blocks * slice / split), last_block(blocks * (slice + 1) / split) {}

    __device__ __forceinline__ bool has_blocks() const { return first_block < last_block; }

    // The rank in the cluster of the CTA that has this one's slice of K and `other` tokens.
    __device__ __forceinline__ uint32_t rank_of_sharer(uint32_t other) const {
        return slice + other * split;
    }

    __device__ __forceinline__ uint16_t sharer_ranks() const {
        uint32_t ranks = 0;
        for (uint32_t other = 0; other < sharers; ++other) ranks |= 1u << rank_of_sharer(other);
        return ranks;
    }
};

// A tile of the cluster, narrowed to one CTA's rows.
template <uint32_t TOKENS, uint32_t FLAT>
struct ClusterTile {
    uint32_t row, rows;  // rows may be none
    uint32_t flat;       // its first column of the flat result
    int32_t expert;

    __device__ __forceinline__ ClusterTile(const GroupTile& tile, uint32_t sharer)
        : row(tile.row + sharer * TOKENS), rows(row < tile.row_end ? tile.row_end - row : 0),
          flat(tile.column_tile * FLAT), expert(tile.expert) {
        rows = rows < TOKENS ? rows : TOKENS;
    }
};

// Call visit(tile) for every tile of this CTA's cluster. All lanes of a warp call.
template <typename Tile, typename Visit>
__device__ __forceinline__ void for_each_tile(GroupedTiles& tiles, const Position& position,
                                              Visit visit) {
    const uint32_t clusters = gridDim.y / position.sharers;
    GroupTile tile;
    for (uint32_t number = blockIdx.y / position.sharers; tiles.find(number, tile);
         number += clusters) {
        visit(Tile(tile, position.sharer));
    }
}

}  // namespace kp
