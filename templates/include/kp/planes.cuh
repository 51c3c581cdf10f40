// A matrix [rows, planes * columns] that is stored plane by plane: [planes, rows, columns].
// Element (row, j) of the flat matrix lies at [j / columns][row][j % columns].
#pragma once
#include <cuda/std/cstdint>

namespace kp {

template <typename T>
struct ThreePlanes {
    T* base;
    uint32_t rows, columns;  // of one plane

    __device__ __forceinline__ uint32_t flat_columns() const { return 3 * columns; }

    // Where flat element (row, flat) lies. The eight elements from a multiple of eight are
    // neighbours, because `columns` is a multiple of eight.
    __device__ __forceinline__ T* at(uint32_t row, uint32_t flat) const {
        const uint32_t plane = (flat >= columns) + (flat >= 2 * columns);
        const uint64_t plane_row = uint64_t(plane) * rows + row;
        return base + plane_row * columns + (flat - plane * columns);
    }
};

}  // namespace kp
