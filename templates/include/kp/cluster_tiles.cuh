// How the CTAs of a cluster share the tiles of a grouped product: grid (split, sharers * clusters),
// cluster (split, sharers), any of them 1.
//   split CTAs along x each take a slice of K of the same tile;
//   sharers CTAs along y take neighbouring token tiles of a group, and the same columns.
// Every cluster walks the tiles of all groups; see grouped_tiles.cuh.
#pragma once
#include <kp/grouped_tiles.cuh>
#include <kp/ptx/cluster.cuh>

namespace kp {

// How the slices of K lie: each a run of blocks, or every split-th block. A CTA that loads short
// pieces of rows does better when its neighbour loads the next piece at the same time.
enum class Slices { runs, interleaved };

// What a CTA is within its cluster, and its blocks of K: first_block, then every step-th.
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

    // Sharers take turns: is it this one's to load what they share of this block?
    __device__ __forceinline__ bool has_turn(uint32_t block) const {
        return block / step % multicast == multicast_rank;
    }

    // The rank in the cluster of the CTA that has this one's slice of K and `other` tokens.
    __device__ __forceinline__ uint32_t cluster_rank(uint32_t other) const {
        return slice + other * split;
    }

    __device__ __forceinline__ uint16_t multicast_mask() const {
        uint32_t ranks = 0;
        for (uint32_t other = 0; other < multicast; ++other) ranks |= 1u << cluster_rank(other);
        return ranks;
    }
};

// A tile of the cluster, narrowed to one CTA's rows.
template <uint32_t TOKENS, uint32_t FLAT>
struct ClusterTile {
    uint32_t row, rows;  // rows may be none
    uint32_t flat;       // its first column of the flat result
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

// The first tile of this CTA's cluster; one without rows and expert where it has none. `tiles` is a
// copy: no number may be asked for twice.
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
