"""tcgen05.cp, PTX ISA 9.1, 9.7.16.9.2."""

import pytest

from kernelpack.emulator.models.fault import UnitFault
from kernelpack.emulator.models.tcgen05_cp import copy
from kernelpack.emulator.models.tensor_memory import join
from kernelpack.errors import UnsupportedError


@pytest.mark.parametrize(
    ("shape", "multicast", "row", "lanes"),
    [
        ("128x256b", "", 100, [100]),
        ("128x128b", "", 100, [100]),
        ("64x128b", "warpx2::02_13", 40, [40, 104]),
        ("64x128b", "warpx2::01_23", 5, [5, 37]),
        ("64x128b", "warpx2::01_23", 40, [72, 104]),
        ("32x128b", "warpx4", 5, [5, 37, 69, 101]),
    ],
)
def test_lanes_of_a_row(shape, multicast, row, lanes):
    """Each warp of a multicast group gets its copy."""
    assert copy(shape, multicast, 4).cells.lanes[:, row, 0].tolist() == lanes


@pytest.mark.parametrize(
    ("shape", "multicast", "row_bytes"), [("128x256b", "", 32), ("32x128b", "warpx4", 16)]
)
def test_columns(shape, multicast, row_bytes):
    """A row's bytes are consecutive columns."""
    plan = copy(shape, multicast, 4)
    assert plan.row_bytes == row_bytes
    assert plan.cells.columns.ravel().tolist() == list(range(4, 4 + row_bytes // 4))


@pytest.mark.parametrize("address", [join(32, 0), 510])
def test_bounds(address):
    """The copy starts at lane 0 and ends within 512 columns."""
    with pytest.raises(UnitFault, match="128x128b"):
        copy("128x128b", "", address)


@pytest.mark.parametrize(("shape", "multicast"), [("4x256b", ""), ("64x128b", "")])
def test_not_modelled(shape, multicast):
    """Forms that are not modelled are named."""
    with pytest.raises(UnsupportedError, match=shape):
        copy(shape, multicast, 0)
