// Planar output layout (stacked Q, K, V): a flat matrix [rows, planes * columns], the N of the
// GEMM, stored plane by plane as [planes, rows, columns]. Element (row, j) of the flat matrix lies
// at [j / columns][row][j % columns].
#pragma once
#include <cuda/std/cstdint>

namespace kp {

template <typename T>
struct Planes {
    T* base;
    uint32_t planes, rows, columns;  // rows and columns of one plane; columns % 8 == 0

    __device__ __forceinline__ uint32_t flat_columns() const { return planes * columns; }

    // The address of flat element (row, flat).
    __device__ __forceinline__ T* at(uint32_t row, uint32_t flat) const {
        const uint32_t plane = flat / columns;
        return base + (uint64_t(plane) * rows + row) * columns + flat % columns;
    }
};

// A row of a flat matrix of three planes, from column `first` on, a multiple of eight. It finds
// columns without a division.
template <typename T>
class PlaneRow {
  public:
    __device__ __forceinline__ PlaneRow(const Planes<T>& c, uint32_t row, uint32_t first)
        : columns(c.columns), first(first) {
#pragma unroll
        for (uint32_t plane = 0; plane < 3; ++plane) {
            starts[plane] =
                c.base + (uint64_t(plane) * c.rows + row) * columns + first - plane * columns;
        }
    }

    // Whether column `first + step` exists.
    __device__ __forceinline__ bool holds(uint32_t step) const {
        return first + step < 3 * columns;
    }

    // Its address. The eight columns from a multiple of eight on are neighbours.
    __device__ __forceinline__ T* at(uint32_t step) const {
        const uint32_t flat = first + step;
        return (flat < columns ? starts[0] : flat < 2 * columns ? starts[1] : starts[2]) + step;
    }

    // The same column, some rows further down.
    __device__ __forceinline__ T* below(T* at, uint32_t rows) const {
        return at + uint64_t(rows) * columns;
    }

  private:
    T* starts[3];  // the address that column `first` would have in each plane
    uint32_t columns, first;
};

}  // namespace kp
