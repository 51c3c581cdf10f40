// A flat matrix [rows, planes * columns] that is stored plane by plane: [planes, rows, columns].
// Element (row, j) of the flat matrix lies at [j / columns][row][j % columns].
#pragma once
#include <cuda/std/cstdint>

namespace kp {

template <typename T>
struct Planes {
    T* base;
    uint32_t planes, rows, columns;  // rows and columns of one plane; columns % 8 == 0

    __device__ __forceinline__ uint32_t flat_columns() const { return planes * columns; }

    // Where flat element (row, flat) lies.
    __device__ __forceinline__ T* at(uint32_t row, uint32_t flat) const {
        const uint32_t plane = flat / columns;
        return base + (uint64_t(plane) * rows + row) * columns + flat % columns;
    }
};

// Walks a row of the flat matrix by eight columns, which never straddle two planes.
template <typename T>
class PlaneCursor {
  public:
    __device__ __forceinline__ PlaneCursor(const Planes<T>& planes, uint32_t row, uint32_t flat)
        : eight(planes.at(row, flat)), columns(planes.columns), column(flat % columns),
          left(planes.flat_columns() - flat), jump(uint64_t(planes.rows - 1) * columns) {}

    // The eight columns it stands at are inside the matrix.
    __device__ __forceinline__ bool inside() const { return left > 0; }
    __device__ __forceinline__ T* get() const { return eight; }

    // The same column, some rows further down.
    __device__ __forceinline__ T* below(T* at, uint32_t rows) const { return at + rows * columns; }

    __device__ __forceinline__ void advance() {
        eight += 8;
        column += 8;
        left -= 8;
        if (column == columns) {
            column = 0;
            eight += jump;
        }
    }

  private:
    T* eight;
    uint32_t columns, column;  // of its plane
    int32_t left;              // columns of the flat matrix from here
    uint64_t jump;             // from the end of a plane's row to its row in the next plane
};

}  // namespace kp
