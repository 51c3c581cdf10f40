// The cache rows of a block of keys, in a ring in shared memory. One warp, the index producer,
// selects them. Gathering warps read the rows; softmax warps read which keys are valid, and the
// rows' scales.
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/selection.cuh>
#include <kp/ptx/elect.cuh>
#include <kp/ptx/math.cuh>
#include <kp/ptx/mbarrier.cuh>
#include <kp/ptx/shared.cuh>
#include <kp/ring.cuh>

namespace kp::mla {

// Scales of the rows of a block: s, log2 s, 1 / s. Masked keys have scale 1.
template <uint32_t BLOCK>
struct RowScales {
    static constexpr float LEAST = 1e-18f;  // a row of scale 0 keeps a weight, though no value

    float scale[BLOCK], log2[BLOCK], inverse[BLOCK];

    __device__ __forceinline__ void set(uint32_t key, float s) {
        scale[key] = s;
        log2[key] = ptx::log2_approx(fmaxf(s, LEAST));
        inverse[key] = __fdiv_rn(1.0f, fmaxf(s, LEAST));
    }
};

struct NoScales {};

// `Scales`: RowScales<BLOCK> or NoScales.
template <uint32_t BLOCK, uint32_t STAGES, typename Scales = NoScales>
struct Rows {
    static constexpr uint32_t KEYS = BLOCK, DEPTH = STAGES, WORDS = BLOCK / 32;

    alignas(16) int32_t row[STAGES][BLOCK];  // -1 for a masked key
    Scales scales[STAGES];
    uint32_t counts[STAGES][WORDS];        // a bit a key
    uint64_t full[STAGES], empty[STAGES];  // arrivals: the selecting warp; every reader

    __device__ __forceinline__ void init_barriers(uint32_t readers) {
        for (uint32_t i = 0; i < STAGES; ++i) {
            ptx::mbarrier_init(ptx::shared_address(&full[i]), 1);
            ptx::mbarrier_init(ptx::shared_address(&empty[i]), readers);
        }
    }

    // The selecting warp: a lane has every 32nd entry of a block, read one block ahead. It calls
    // `set_scale(scales, key, row, tile)` for each key; tiles of 64 keys count from the first
    // block.
    template <typename Keys, typename SetScale>
    __device__ __forceinline__ void select(const Keys& keys, uint32_t blocks, SetScale set_scale) {
        const uint32_t lane = threadIdx.x % 32;
        int32_t entries[WORDS];
#pragma unroll
        for (uint32_t i = 0; i < WORDS; ++i) entries[i] = keys.entry(32 * i + lane);
        Ring<STAGES> ring;
        for (uint32_t block = 0; block < blocks; ++block) {
            int32_t rows[WORDS];
#pragma unroll
            for (uint32_t i = 0; i < WORDS; ++i) {
                rows[i] = keys.row(entries[i], block * BLOCK + 32 * i + lane);
                entries[i] = keys.entry((block + 1) * BLOCK + 32 * i + lane);
            }
            ptx::mbarrier_wait(ptx::shared_address(&empty[ring.stage]), ring.free_phase());
#pragma unroll
            for (uint32_t i = 0; i < WORDS; ++i) {
                const uint32_t word = __ballot_sync(0xffffffff, rows[i] >= 0);
                row[ring.stage][32 * i + lane] = rows[i];
                set_scale(scales[ring.stage], 32 * i + lane, rows[i],
                          (block * BLOCK + 32 * i) / 64);
                if (lane == 0) counts[ring.stage][i] = word;
            }
            __syncwarp();
            if (ptx::elect_one()) ptx::mbarrier_arrive(ptx::shared_address(&full[ring.stage]));
            ring.advance();
        }
    }

    template <typename Keys>
    __device__ __forceinline__ void select(const Keys& keys, uint32_t blocks) {
        select(keys, blocks, [](Scales&, uint32_t, int32_t, uint32_t) {});
    }
};

// A consumer that reads the rows of block after block.
template <typename Rows>
struct RowsReader {
    Rows& rows;
    Ring<Rows::DEPTH> ring;

    __device__ __forceinline__ explicit RowsReader(Rows& rows) : rows(rows) {}

    __device__ __forceinline__ void wait() {
        ptx::mbarrier_wait(ptx::shared_address(&rows.full[ring.stage]), ring.phase);
    }

    // Sixteen rows from key `first` on, four a gather.
    __device__ __forceinline__ void read(int4 (&quads)[4], uint32_t first) const {
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
            quads[i] = *reinterpret_cast<const int4*>(&rows.row[ring.stage][first + 4 * i]);
        }
    }

    __device__ __forceinline__ uint32_t counts(uint32_t word) const {
        return rows.counts[ring.stage][word];
    }

    __device__ __forceinline__ const auto& scales() const { return rows.scales[ring.stage]; }

    // One thread calls it for each reader that `Rows::init_barriers` counts, then goes to the next
    // block.
    __device__ __forceinline__ void release() {
        ptx::mbarrier_arrive(ptx::shared_address(&rows.empty[ring.stage]));
    }
};

}  // namespace kp::mla
