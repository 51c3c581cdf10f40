"""Tensor memory layouts, PTX ISA 9.1, 9.7.16.10.5 and .7, as CuTe's traits state them."""

import numpy as np
import pytest

from kernelpack.emulator.models import tensor_memory
from kernelpack.emulator.models.fault import UnitFault
from kernelpack.emulator.models.tensor_memory import a_operand, accumulator, scales


def cell(cells, *position):
    shape = np.broadcast_shapes(cells.lanes.shape, cells.columns.shape)
    lanes = np.broadcast_to(cells.lanes, shape)
    return int(lanes[position]), int(np.broadcast_to(cells.columns, shape)[position])


LAYOUTS = {
    "A": {"m": 256, "cta_group": 2, "ws": False},
    "B": {"m": 128, "cta_group": 2, "ws": False},
    "D": {"m": 128, "cta_group": 1, "ws": False},
    "D.ws": {"m": 128, "cta_group": 1, "ws": True},
    "E": {"m": 64, "cta_group": 1, "ws": True},
    "F": {"m": 64, "cta_group": 1, "ws": False},
    "G": {"m": 32, "cta_group": 1, "ws": True},
}


@pytest.mark.parametrize(
    ("layout", "row", "column", "expected"),
    [
        ("A", 127, 255, (127, 265)),
        ("B", 63, 127, (63, 137)),
        ("B", 0, 128, (64, 10)),
        ("D", 100, 7, (100, 17)),
        ("D.ws", 100, 7, (100, 17)),
        ("E", 5, 127, (5, 137)),
        ("E", 5, 128, (69, 10)),
        ("F", 15, 3, (15, 13)),
        ("F", 16, 3, (32, 13)),
        ("F", 63, 0, (111, 10)),
        ("G", 31, 63, (31, 73)),
        ("G", 0, 192, (96, 10)),
    ],
)
def test_accumulator_cell(layout, row, column, expected):
    """Where an element of D is; N = 256, D at column 10."""
    assert expected == cell(accumulator(**LAYOUTS[layout], n=256, address=10), row, column)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [64, 256])
def test_accumulator_is_injective(layout, n):
    """No two elements share a cell."""
    cells = accumulator(**LAYOUTS[layout], n=n, address=0).flat()
    assert len(np.unique(cells)) == len(cells)


@pytest.mark.parametrize("layout", ["B", "E", "G", "D", "A"])
def test_full_layouts_fill_every_lane(layout):
    """All but the half layout use all 128 lanes."""
    cells = accumulator(**LAYOUTS[layout], n=256, address=0)
    assert set(np.unique(cells.lanes)) == set(range(128))


def test_half_layout_may_start_at_lane_16():
    """Layout F at lane 16 uses the other 16 lanes of each quadrant."""
    upper = accumulator(**LAYOUTS["F"], n=8, address=tensor_memory.join(16, 0))
    lower = accumulator(**LAYOUTS["F"], n=8, address=0)
    assert not set(np.unique(upper.lanes)) & set(np.unique(lower.lanes))


@pytest.mark.parametrize(("layout", "lane"), [("D", 16), ("B", 64), ("F", 32), ("E", 16)])
def test_accumulator_lane(layout, lane):
    """The manual's lane alignments."""
    with pytest.raises(UnitFault, match=f"lane {lane}"):
        accumulator(**LAYOUTS[layout], n=64, address=tensor_memory.join(lane, 0))


def test_accumulator_beyond_the_last_column():
    """D must fit."""
    with pytest.raises(UnitFault, match="columns 300 to 555"):
        accumulator(**LAYOUTS["D"], n=256, address=300)


def test_folded_accumulator_is_half_as_wide():
    """Layout B with N = 256 needs 128 columns."""
    assert accumulator(**LAYOUTS["B"], n=256, address=384).columns.max() == 511


@pytest.mark.parametrize(
    ("layout", "copies", "row", "lanes"),
    [
        ("D", 1, 77, [77]),
        ("B", 2, 10, [10, 74]),
        ("E", 2, 10, [10, 74]),
        ("G", 4, 10, [10, 42, 74, 106]),
        ("F", 1, 20, [36]),
    ],
)
def test_a_operand_is_copied_for_each_fold(layout, copies, row, lanes):
    """Every group of lanes that computes has its own copy of A."""
    cells = a_operand(**LAYOUTS[layout], words=8, address=0)
    assert cells.lanes.shape[0] == copies
    assert cells.lanes[:, row, 0].tolist() == lanes


def test_a_operand_words_are_columns():
    """A's K runs along the columns."""
    assert a_operand(**LAYOUTS["D"], words=4, address=8).columns.ravel().tolist() == [8, 9, 10, 11]


def test_scales_of_a_row():
    """Row 70 is in lane 6 of every quadrant, third column."""
    cells = scales(rows=128, address=100)
    assert [cell(cells, q, 70) for q in range(4)] == [(6 + 32 * q, 102) for q in range(4)]


def test_scales_of_b_in_halves():
    """For a pair with M = 128 the second half of N is in quadrants 2 and 3."""
    cells = scales(rows=128, address=100, halves=True)
    assert [cell(cells, q, 3) for q in range(2)] == [(3, 100), (35, 100)]
    assert [cell(cells, q, 64 + 33) for q in range(2)] == [(65, 101), (97, 101)]


def test_scale_codes():
    """Scale factors are bytes of a cell, from the id on."""
    words = np.uint32([0x4433_2211])
    assert tensor_memory.scale_codes(words, 2, 2).tolist() == [[0x33, 0x44]]


@pytest.mark.parametrize("count", [0, 16, 48, 1024])
def test_allocation_size(count):
    """Allocations are powers of two from 32 to 512."""
    with pytest.raises(UnitFault, match=f"{count} columns"):
        tensor_memory.check_columns(count)


def test_allocation_size_of_one_quarter():
    """128 columns are allowed."""
    tensor_memory.check_columns(128)


@pytest.mark.parametrize(
    ("taken", "count", "expected"), [(0, 512, 0), (64, 32, 64), (1, 512, None)]
)
def test_first_fit(taken, count, expected):
    """The first free columns, or None."""
    busy = np.arange(512) < taken
    assert tensor_memory.first_fit(busy, count) == expected


@pytest.mark.parametrize(
    ("lane", "warp", "expected"),
    [(0, 0, 0), (0, 5, 32), (16, 2, 80), (64, 2, 64), (112, 3, 112), (128, 1, 32), (192, 2, 64)],
)
def test_quadrant(lane, warp, expected):
    """A warp that names quadrant 0 means its own; lanes from 128 are a pair's second CTA's."""
    assert expected == tensor_memory.quadrant(lane, warp)


@pytest.mark.parametrize("lane", [64, 192, 256])
def test_foreign_quadrant(lane):
    """A warp cannot reach another warp's lanes, by no pair's numbers either."""
    with pytest.raises(UnitFault, match="reaches lanes 32 to 63"):
        tensor_memory.quadrant(lane, 1)


def test_cells_read_in_the_shape_of_the_matrix():
    """`of` takes the values in matrix order."""
    memory = np.arange(128 * 512).reshape(128, 512)
    cells = accumulator(**LAYOUTS["B"], n=16, address=4)
    assert np.array_equal(cells.of(memory).ravel(), cells.flat())


def test_address_round_trip():
    """Lane and column of an address."""
    assert tensor_memory.split(tensor_memory.join(96, 511)) == (96, 511)


@pytest.mark.parametrize(
    ("m", "cta_group", "ws"), [(256, 1, False), (64, 2, False), (256, 1, True)]
)
def test_shape_without_a_layout(m, cta_group, ws):
    """An M that the manual does not list has no place in tensor memory."""
    with pytest.raises(UnitFault, match=f"M = {m}"):
        accumulator(m=m, n=64, cta_group=cta_group, ws=ws, address=0)
