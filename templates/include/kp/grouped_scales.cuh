// Block scales of a grouped GEMM's operand: each group's scales begin on a fresh block of 128 rows.
//
// Group g is the rows [offsets[g], offsets[g + 1]) of expert ids[g]. Its scales begin at row block
// offsets[g] / 128 + scale_offsets[g], which never decreases from one group to the next.
#pragma once
#include <cuda/std/cstdint>

namespace kp {

constexpr uint32_t SCALE_BLOCK_ROWS = 128;

// The rows of one row block of the scale tensor.
struct ScaleBlock {
    uint32_t row = 0;   // its first row, counted over all groups
    uint32_t rows = 0;  // at most 128; the rest is padding
    int32_t expert = -1;
};

class GroupedScales {
  public:
    const uint32_t* offsets;
    const uint32_t* scale_offsets;
    const int32_t* ids;
    uint32_t groups;

    // The group that owns a row block, if one does. All lanes of the warp call.
    __device__ __forceinline__ ScaleBlock find(uint32_t block) const {
        uint32_t group;
        if (!last_begun(block, group)) return {};
        const uint32_t begin = offsets[group], rows = offsets[group + 1] - begin;
        const uint32_t before = (block - first_block(group)) * SCALE_BLOCK_ROWS;
        if (before >= rows) return {};
        return {begin + before, min(SCALE_BLOCK_ROWS, rows - before), ids[group]};
    }

  private:
    __device__ __forceinline__ uint32_t first_block(uint32_t group) const {
        return offsets[group] / SCALE_BLOCK_ROWS + scale_offsets[group];
    }

    // The last group that begins at this block or before it: each lane looks at one of 32 groups,
    // evenly spaced, and then at those between two of them.
    __device__ __forceinline__ bool last_begun(uint32_t block, uint32_t& group) const {
        const uint32_t lane = threadIdx.x % 32;
        uint32_t candidates = groups, step;
        group = 0;
        do {
            step = (candidates + 31) / 32;
            const bool begun =
                lane * step < candidates && first_block(group + lane * step) <= block;
            const uint32_t lanes_begun = __popc(__ballot_sync(0xffffffff, begun));
            if (lanes_begun == 0) return false;
            const uint32_t passed = (lanes_begun - 1) * step;
            group += passed;
            candidates = min(step, candidates - passed);
        } while (step > 1);
        return true;
    }
};

}  // namespace kp
