"""Numbers for parameters: what they become, and which are refused."""

import numpy as np
import pytest

from kernelpack.emulator.numbers import scalar
from kernelpack.emulator.ptx.syntax import BITS, Parameter
from kernelpack.errors import ProblemError


def parameter(kind, count=1):
    return Parameter("p", 0, BITS[kind] // 8 * count, 4, kind)


@pytest.mark.parametrize(
    ("given", "kind", "count", "expected"),
    [
        (7, "u32", 1, 7),
        (-1, "u32", 1, 0xFFFF_FFFF),
        (-1, "s64", 1, 0xFFFF_FFFF_FFFF_FFFF),
        (0xFFFF_FFFF, "s32", 1, 0xFFFF_FFFF),
        (True, "u8", 1, 1),
        (1.5, "f32", 1, 0x3FC0_0000),
        (2, "f32", 1, 0x4000_0000),
        (float("inf"), "f32", 1, 0x7F80_0000),
        (1.5, "f64", 1, 0x3FF8_0000_0000_0000),
        (np.int32(-1), "u32", 1, 0xFFFF_FFFF),
        (np.float16(1), "b16", 1, 0x3C00),
        (np.float16(1), "b8", 2, 0x3C00),
        (np.float32(1), "b32", 1, 0x3F80_0000),
    ],
)
def test_bits(given, kind, count, expected):
    """A plain number becomes what is declared; numpy's keeps its bits."""
    assert expected == scalar(given, parameter(kind, count)).value


@pytest.mark.parametrize(
    ("given", "kind", "count", "says"),
    [
        (1 << 40, "u32", 1, "1099511627776 of type int for a parameter of .u32"),
        (-(1 << 31) - 1, "s32", 1, "it holds -2147483648 to 4294967295"),
        (2.7, "u32", 1, "give an integer"),
        (2.0, "b32", 1, "give an integer"),
        (1e300, "f32", 1, "it is out of its range"),
        (np.float32(2.7), "u32", 1, "of type float32"),
        (np.int32(2), "f32", 1, "give a plain number"),
        (np.int64(2), "u32", 1, "of type int64"),
        (1, "b8", 2, "for a parameter of .b8[2]"),
        (1.0, "b8", 16, "give numpy's type of 16 bytes"),
        ("1", "u32", 1, "'1' of type str"),
    ],
)
def test_refused(given, kind, count, says):
    """Nothing is cut, and no bits are taken for another type's."""
    with pytest.raises(ProblemError) as caught:
        scalar(given, parameter(kind, count))
    assert says in str(caught.value)
