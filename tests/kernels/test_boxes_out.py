"""Boxes that TMA stores: each row of a matrix where it belongs, and no other byte."""

import numpy as np
import pytest

from kernelpack.spec.tensormap import Element, Swizzle, TensorMap
from tests.kv.device import Device

pytestmark = pytest.mark.toolchain

# Four warps fill boxes side by side, from `column` on: two share one and transpose into it, or each
# has its own, a row a lane. Element (i, j) is a number of both.
KERNEL = """
#include <kp/boxes_out.cuh>
#include <kp/ptx/matrix_transposed.cuh>
using namespace kp;
using Out = BoxesOut<uint16_t, ROWS, WARPS>;
__device__ uint32_t number(uint32_t row, uint32_t column) {
    return (row * 257 + column * 3) & 0xffff;
}
__device__ void transpose(const Out& box, uint32_t row, uint32_t column) {
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % WARPS;
    for (uint32_t i = 0; i < ROWS; i += 8) {
        uint32_t matrices[4];
        for (uint32_t j = 0; j < 4; ++j) {
            const uint32_t mine = column + 32 * warp + 8 * j + lane / 4;
            const uint32_t first = row + i + lane % 4 * 2;
            matrices[j] = number(first, mine) | number(first + 1, mine) << 16;
        }
        ptx::store_transposed(box.at(i + lane % 8, 4 * warp + lane / 8), matrices);
    }
}
__device__ void copy(const Out& box, uint32_t row, uint32_t column) {
    const uint32_t lane = threadIdx.x % 32;
    for (uint32_t i = 0; i < 8; ++i) {
        uint32_t words[4];
        for (uint32_t j = 0; j < 4; ++j) {
            const uint32_t first = column + 8 * i + 2 * j;
            words[j] = number(row + lane, first) | number(row + lane, first + 1) << 16;
        }
        ptx::store_shared(box.at(lane, i), make_uint4(words[0], words[1], words[2], words[3]));
    }
}
extern "C" __global__ void test(uint64_t c, const __grid_constant__ TensorMap map, uint32_t columns,
                                uint32_t row, uint32_t end, uint32_t column) {
    extern __shared__ __align__(1024) uint8_t shared[];
    const uint32_t group = threadIdx.x / (32 * WARPS);
    const MatrixOut<uint16_t> to{reinterpret_cast<uint16_t*>(c), columns, map};
    Out boxes(ptx::shared_address(shared) + group * Out::BYTES, 1 + group);
    column += group * Out::COLUMNS;
    for (; row < end && column < columns; row += ROWS) {
        if (WARPS > 1) transpose(boxes, row, column); else copy(boxes, row, column);
        boxes.send(to, row, column, min(end - row, uint32_t(ROWS)));
    }
    boxes.end();
}
"""
TOTAL, COLUMNS = 90, 200
COLUMN = 64
"""Where boxes begin; the last ones are narrower than their 64 columns, or outside."""


@pytest.fixture
def device() -> Device:
    """The emulator; in tests/gpu a real one."""
    return Device("sm_90a")


def stored(device, rows, warps, row, end):
    """The matrix of zeros after some of its rows were stored."""
    address = device.put(np.zeros((TOTAL, COLUMNS), np.uint16))
    made = TensorMap(
        name="c",
        element=Element.U16,
        address=address,
        dims=(COLUMNS, TOTAL),
        strides_bytes=(2 * COLUMNS,),
        box=(64, rows),
        element_strides=(1, 1),
        swizzle=Swizzle.B128,
    )
    device.run(
        KERNEL, {"ROWS": rows, "WARPS": warps}, address, made, COLUMNS, row, end, COLUMN,
        threads=128, shared_bytes=4 // warps * 2 * rows * 128,
    )  # fmt: skip
    return device.read(address, 2 * TOTAL * COLUMNS).view(np.uint16).reshape(TOTAL, COLUMNS)


@pytest.mark.parametrize(("rows", "warps"), [(8, 2), (16, 2), (32, 2), (32, 1)])
@pytest.mark.parametrize("end", [6, 69, 85])
def test_rows_are_stored_where_they_belong(device, rows, warps, end):
    """Boxes that are whole and one that is not, also at the last columns; all else stays zero."""
    row, column = np.mgrid[:TOTAL, :COLUMNS]
    wanted = (row * 257 + column * 3).astype(np.uint16)
    last = COLUMN + 4 // warps * 64
    wanted[(row < 5) | (row >= end) | (column < COLUMN) | (column >= last)] = 0
    assert wanted.tolist() == stored(device, rows, warps, 5, end).tolist()
