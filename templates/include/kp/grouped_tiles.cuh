// Persistent tile scheduler of a grouped GEMM (variable group lengths). Tiles are found on the
// device: the host does not know the lengths.
//
// Group g is the rows [offsets[g], offsets[g + 1]) and multiplies expert ids[g]. It is cut into
// tiles of `tile_rows` rows, `column_tiles` of them side by side. Tiles of all groups are numbered
// by group, row, column. An empty group has no tile; a group without an expert has tiles only if
// `Inactive::listed`.
// A whole warp calls: each lane holds one of 32 groups, and a prefix sum over the lanes gives the
// group of a tile. Callers must ask for tile numbers in increasing order.
#pragma once
#include <kp/ptx/global.cuh>

namespace kp {

struct GroupTile {
    uint32_t row, row_end;  // its first row; the end of its group
    uint32_t column_tile;
    int32_t expert;  // negative: no expert
    int owner;       // the lane that holds its group
};

// Whether groups of a negative expert have tiles.
enum class Inactive { listed, skipped };

class GroupedTiles {
  public:
    // `early`: the previous grid may still write offsets and ids, so keep them out of L1.
    // `words`: one more number for each group, or null; see `word_of`.
    __device__ __forceinline__ GroupedTiles(const uint32_t* offsets, const int32_t* ids,
                                            uint32_t groups, uint32_t tile_rows,
                                            uint32_t column_tiles, bool early = false,
                                            Inactive inactive = Inactive::listed,
                                            const uint32_t* words = nullptr)
        : offsets(offsets), ids(ids), words(words), groups(groups), tile_rows(tile_rows),
          column_tiles(column_tiles), early(early), inactive(inactive), lane(threadIdx.x % 32) {
        read_groups();
    }

    // Find the tile with this number; false after the last tile. All lanes of the warp call.
    __device__ __forceinline__ bool find(uint32_t number, GroupTile& tile) {
        while (number >= tiles_before + __shfl_sync(ALL, tiles_through, 31)) {
            tiles_before += __shfl_sync(ALL, tiles_through, 31);
            first_group += 32;
            if (first_group >= groups) return false;
            read_groups();
        }
        const uint32_t in_these = number - tiles_before;
        const int owner = __ffs(__ballot_sync(ALL, in_these < tiles_through)) - 1;
        const uint32_t in_group = in_these - __shfl_sync(ALL, tiles_through - tiles, owner);
        tile.row = __shfl_sync(ALL, begin, owner) + in_group / column_tiles * tile_rows;
        tile.row_end = __shfl_sync(ALL, end, owner);
        tile.column_tile = in_group % column_tiles;
        tile.expert = __shfl_sync(ALL, expert, owner);
        tile.owner = owner;
        return true;
    }

    // The first row, and the word, of the group of the tile found last. All lanes call.
    __device__ __forceinline__ uint32_t begin_of(const GroupTile& tile) const {
        return __shfl_sync(ALL, begin, tile.owner);
    }
    __device__ __forceinline__ uint32_t word_of(const GroupTile& tile) const {
        return __shfl_sync(ALL, word, tile.owner);
    }

  private:
    static constexpr uint32_t ALL = 0xffffffff;

    __device__ __forceinline__ uint32_t read(const uint32_t* from) const {
        return early ? ptx::load_relaxed(from) : *from;
    }

    // Load one group a lane, and count its tiles and those of the lanes below.
    __device__ __forceinline__ void read_groups() {
        const uint32_t group = first_group + lane;
        begin = end = word = 0;
        expert = -1;
        if (group < groups) {
            begin = read(offsets + group);
            end = read(offsets + group + 1);
            expert = read(reinterpret_cast<const uint32_t*>(ids) + group);
            if (words != nullptr) word = read(words + group);
        }
        const bool has_tiles = expert >= 0 || inactive == Inactive::listed;
        tiles = !has_tiles ? 0 : (end - begin + tile_rows - 1) / tile_rows * column_tiles;
        tiles_through = tiles;
        for (uint32_t step = 1; step < 32; step *= 2) {
            const uint32_t below = __shfl_up_sync(ALL, tiles_through, step);
            tiles_through += lane >= step ? below : 0;
        }
    }

    const uint32_t* offsets;
    const int32_t* ids;
    const uint32_t* words;
    uint32_t groups, tile_rows, column_tiles;
    bool early;
    Inactive inactive;
    uint32_t lane;
    uint32_t first_group = 0;   // first of the 32 groups that the lanes hold
    uint32_t tiles_before = 0;  // of the groups before these
    uint32_t begin, end;        // rows of this lane's group
    int32_t expert;
    uint32_t word;
    uint32_t tiles, tiles_through;  // of this lane's group; of the lanes up to it
};

}  // namespace kp
