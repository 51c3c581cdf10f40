"""The swizzles against the tables of PTX ISA 9.1, 5.5.7."""

import numpy as np
import pytest

from kernelpack.emulator.models.swizzle import PATTERNS, apply, base_offset
from kernelpack.spec.tensormap import Swizzle

ALL = list(Swizzle)
# Rows of the manual's tables: which 16-byte cell is where, line by line of 128 bytes.
TABLES = {
    Swizzle.B32: ["01234567", "10325476"],
    Swizzle.B64: ["01234567", "10325476", "23016745", "32107654"],
    Swizzle.B128: [
        *("01234567", "10325476", "23016745", "32107654"),
        *("45670123", "54761032", "67452301", "76543210"),
    ],
    Swizzle.B128_ATOM32: ["01234567", "23016745", "45670123", "67452301"],
    Swizzle.B128_ATOM64: ["01234567", "45670123"],
}


def cells(swizzle, line):
    """The 16-byte cells of a line, as the data that is in each place."""
    starts = np.arange(8) * 16 + 128 * line
    return "".join(str(cell) for cell in apply(swizzle, starts) % 128 // 16)


@pytest.mark.parametrize("swizzle", TABLES)
@pytest.mark.parametrize("line", range(16))
def test_pattern_is_the_manuals(swizzle, line):
    """Each line of the repeating pattern is the row of the manual's table."""
    assert TABLES[swizzle][line % len(TABLES[swizzle])] == cells(swizzle, line)


@pytest.mark.parametrize("swizzle", ALL)
def test_swizzle_is_its_own_inverse(swizzle):
    """Applied twice, every address is itself again."""
    addresses = np.arange(4096)
    assert np.array_equal(addresses, apply(swizzle, apply(swizzle, addresses)))


@pytest.mark.parametrize("swizzle", ALL)
def test_swizzle_stays_in_its_line(swizzle):
    """A byte never leaves its 128-byte line."""
    addresses = np.arange(4096)
    assert np.array_equal(addresses // 128, apply(swizzle, addresses) // 128)


@pytest.mark.parametrize("swizzle", [s for s in ALL if s is not Swizzle.B128_ATOM32_FLIP8])
def test_atoms_stay_whole(swizzle):
    """Bytes of one atom keep their order."""
    atom = PATTERNS[swizzle].atom_bytes
    addresses = np.arange(4096)
    assert np.array_equal(addresses % atom, apply(swizzle, addresses) % atom)


@pytest.mark.parametrize("swizzle", ALL)
def test_pattern_repeats(swizzle):
    """Moving by the period moves the result by the period."""
    period = PATTERNS[swizzle].period_bytes
    addresses = np.arange(2048)
    assert np.array_equal(apply(swizzle, addresses) + period, apply(swizzle, addresses + period))


@pytest.mark.parametrize(("line", "expected"), [(0, 0), (1, 8), (2, 0), (3, 8)])
def test_flip_exchanges_halves_in_every_other_line(line, expected):
    """The 8-byte flip acts in odd lines only."""
    assert expected == apply(Swizzle.B128_ATOM32_FLIP8, np.array([128 * line]))[0] % 16


@pytest.mark.parametrize(
    ("swizzle", "start", "expected"),
    [
        (Swizzle.B128, 1024, 0),
        (Swizzle.B128, 128 * 5, 5),
        (Swizzle.B64, 128 * 5, 1),
        (Swizzle.B32, 128 * 5, 1),
        (Swizzle.NONE, 128 * 5, 0),
    ],
)
def test_base_offset(swizzle, start, expected):
    """(start / 128) modulo the lines of the pattern."""
    assert expected == base_offset(swizzle, start)
