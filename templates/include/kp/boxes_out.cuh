// Epilogue: the TMA store of output rows, double-buffered. Warps fill a box of shared memory, and
// the bulk engine stores it.
//
// A box is ROWS rows of 128 bytes in the 128B swizzle. Two boxes take turns: warps fill one while
// TMA reads the other. TMA stores whole boxes only. If a box has fewer rows, the warps store just
// those rows, 16 bytes a thread, because the rows after them belong to another tile.
#pragma once
#include <cuda/std/cstdint>
#include <kp/ptx/barrier.cuh>
#include <kp/ptx/bulk.cuh>
#include <kp/ptx/elect.cuh>
#include <kp/ptx/fence.cuh>
#include <kp/ptx/shared.cuh>
#include <kp/ptx/tma_store.cuh>
#include <kp/swizzle.cuh>

namespace kp {

// A row-major matrix to store into, and the tensor map of its boxes.
template <typename T>
struct MatrixOut {
    T* base;
    uint32_t columns;  // a multiple of 16 bytes
    const TensorMap& map;
};

// The boxes of WARPS neighbouring warps. All their lanes call every function, with the same values.
template <typename T, uint32_t ROWS, uint32_t WARPS>
class BoxesOut {
  public:
    static constexpr uint32_t ROW_BYTES = 128, CHUNK = 16 / sizeof(T), COLUMNS = 8 * CHUNK;
    static constexpr uint32_t BOX_BYTES = ROWS * ROW_BYTES, BYTES = 2 * BOX_BYTES;
    static_assert(ROWS % 8 == 0, "a box begins where the swizzle's pattern does");

    // `shared` is a multiple of 1024 bytes. Several warps need a CTA barrier of their own:
    // `barrier`.
    __device__ __forceinline__ BoxesOut(uint32_t shared, uint32_t barrier)
        : box(shared), other(shared + BOX_BYTES), barrier(barrier),
          thread(threadIdx.x % (32 * WARPS)), leader(ptx::elect_one() && thread < 32) {}

    // The address of a row's 16-byte chunk in the box that is filled now.
    __device__ __forceinline__ uint32_t at(uint32_t row, uint32_t chunk) const {
        return box + swizzle<128>(row * ROW_BYTES + chunk * 16);
    }

    // Store `rows` rows from (row, column) on, as far as there are columns; fill the other box
    // next.
    __device__ __forceinline__ void send(const MatrixOut<T>& to, uint32_t row, uint32_t column,
                                         uint32_t rows) {
        const bool is_whole = rows == ROWS;
        if (is_whole) ptx::fence_proxy_async_shared();
        if (leader) ptx::bulk_wait_read();  // TMA has read the other box
        meet();
        if (is_whole) {
            if (leader) {
                ptx::tma_store(to.map, box, column, row);
                ptx::bulk_commit();
            }
        } else {
            store(to, row, column, rows);
        }
        const uint32_t sent = box;
        box = other;
        other = sent;
    }

    // Wait until TMA has read everything: a CTA must not exit before.
    __device__ __forceinline__ void end() const {
        if (leader) ptx::bulk_wait_read();
    }

  private:
    __device__ __forceinline__ void meet() const {
        if constexpr (WARPS == 1) {
            __syncwarp();
        } else {
            ptx::barrier_sync(barrier, 32 * WARPS);
        }
    }

    // Eight threads a row. All of them meet before this box is filled again.
    __device__ __forceinline__ void store(const MatrixOut<T>& to, uint32_t row, uint32_t column,
                                          uint32_t rows) const {
        const uint32_t chunk = thread % 8, mine = column + chunk * CHUNK;
        if (mine >= to.columns) return;
        for (uint32_t i = thread / 8; i < rows; i += 4 * WARPS) {
            T* there = to.base + uint64_t(row + i) * to.columns + mine;
            *reinterpret_cast<uint4*>(there) = ptx::load_shared_words(at(i, chunk));
        }
    }

    uint32_t box, other;
    uint32_t barrier, thread;
    bool leader;
};

}  // namespace kp
