"""Fragments of tcgen05.ld and st, PTX ISA 9.1, 9.7.16.2.3.1."""

import numpy as np
import pytest

from kernelpack.emulator.models.fault import UnitFault
from kernelpack.emulator.models.tensor_memory import join
from kernelpack.emulator.models.tensor_registers import from_registers, registers, to_registers

SHAPES = [
    *(("32x32b", x, 32, x) for x in (1, 8, 128)),
    *(("16x64b", x, 16, 2 * x) for x in (1, 8, 128)),
    *(("16x128b", x, 16, 4 * x) for x in (1, 8, 64)),
    *(("16x256b", x, 16, 8 * x) for x in (1, 8, 32)),
]


@pytest.mark.parametrize(("shape", "repeats", "lanes", "columns"), SHAPES)
def test_fragment_covers_its_rectangle_once(shape, repeats, lanes, columns):
    """A warp's registers are a lanes x columns rectangle, each cell once."""
    flat = registers(shape, repeats, 0).flat()
    expected = (np.arange(lanes)[:, None] * 512 + np.arange(columns)).ravel()
    assert np.array_equal(expected, np.sort(flat))


@pytest.mark.parametrize(
    ("shape", "register", "thread", "lane", "column"),
    [
        ("32x32b", 2, 7, 7, 2),
        ("16x64b", 0, 1, 8, 0),
        ("16x64b", 1, 2, 0, 3),
        ("16x128b", 1, 0, 8, 0),
        ("16x128b", 2, 5, 1, 5),
        ("16x256b", 1, 0, 0, 1),
        ("16x256b", 2, 0, 8, 0),
        ("16x256b", 4, 1, 0, 10),
    ],
)
def test_register_of_a_thread(shape, register, thread, lane, column):
    """The cell of one register of one thread."""
    cells = registers(shape, 4, join(32, 100))
    assert cells.lanes[register, 0, thread] == 32 + lane
    assert cells.columns[register, 0, thread] == 100 + column


def test_split_halves():
    """16x32bx2: the upper 16 threads read `half_split` columns further."""
    cells = registers("16x32bx2", 2, 0, half_split=16)
    assert cells.lanes[0, 0, [0, 16]].tolist() == [0, 0]
    assert cells.columns[:, 0, [0, 16]].tolist() == [[0, 16], [1, 17]]


def test_packed_registers_take_two_columns():
    """With .pack::16b register j is columns 2j and 2j + 1."""
    assert registers("32x32b", 2, 0, pack=True).columns[:, :, 0].tolist() == [[0, 1], [2, 3]]


def test_pack():
    """A packed load joins the low halves of two cells."""
    words = np.uint32([[[0xAAAA_1111], [0xBBBB_2222]]])
    assert to_registers(words).tolist() == [[0x2222_1111]]


def test_plain_load():
    """An unpacked register is its cell."""
    assert to_registers(np.uint32([[[7]]])).tolist() == [[7]]


@pytest.mark.parametrize(
    ("pack", "expected"), [(False, [[[0x2222_1111]]]), (True, [[[0x1111], [0x2222]]])]
)
def test_store(pack, expected):
    """An unpacking store gives each half a cell of its own."""
    assert from_registers(np.uint32([[0x2222_1111]]), pack=pack).tolist() == expected


@pytest.mark.parametrize(("shape", "repeats"), [("32x32b", 3), ("16x256b", 64)])
def test_repeats(shape, repeats):
    """Repetitions are powers of two with at most 128 registers."""
    with pytest.raises(UnitFault, match="does not exist"):
        registers(shape, repeats, 0)


@pytest.mark.parametrize(("shape", "lane"), [("32x32b", 16), ("16x64b", 8)])
def test_lane(shape, lane):
    """A fragment stays in one quadrant, and starts at a multiple of 16."""
    with pytest.raises(UnitFault, match="one quadrant"):
        registers(shape, 1, join(lane, 0))


def test_columns():
    """Nothing beyond column 511."""
    with pytest.raises(UnitFault, match="column 515"):
        registers("32x32b", 16, 500)
