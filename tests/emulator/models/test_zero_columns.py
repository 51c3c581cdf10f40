"""Zero-column masks: the examples of PTX ISA 9.1, 9.7.16.4.3."""

import pytest

from kernelpack.emulator.models.zero_columns import zero_columns
from kernelpack.errors import UnsupportedError


def mask(m, n, *, starts=(), firsts=(), shift=0, use=3, skip=2, generate=1):
    """The generated mask, lowest column first, in groups."""
    raw = skip << 40 | use << 48 | generate << 39 | shift << 56
    raw |= sum(s << (8 * i) for i, s in enumerate(starts))
    raw |= sum(f << (32 + i) for i, f in enumerate(firsts))
    flags = "".join(str(int(flag)) for flag in zero_columns(raw, m, n))
    width = n * m // 128
    return [flags[i : i + width] for i in range(0, n, width)]


def test_no_mask():
    """Example 1: without the non-zero flag every column of B is used."""
    assert mask(128, 16, generate=0) == ["0" * 16]


def test_one_group():
    """Example 2: four columns used, three zero, and so on."""
    assert mask(128, 14) == ["00001110000111"]


def test_two_groups():
    """Example 3: the first group starts with zeros of B, the second does not."""
    assert mask(64, 28, firsts=(1, 0)) == ["11100001110000", "00001110000111"]


def test_four_groups():
    """Example 4: start counts cut the first run."""
    assert mask(32, 48, starts=(0, 1, 2, 1), firsts=(1, 1, 0, 0)) == [
        "111000011100",
        "110000111000",
        "001110000111",
        "000111000011",
    ]


def test_column_shift_is_not_modelled():
    """A shifted mask reads other columns of B, and is refused."""
    with pytest.raises(UnsupportedError, match="column shift"):
        mask(128, 16, shift=2)
