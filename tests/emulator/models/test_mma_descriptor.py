"""Shared-memory descriptors and the canonical layouts of PTX ISA 9.1, 9.7.16.3.3."""

import numpy as np
import pytest

from kernelpack.emulator.models import mma_descriptor, swizzle
from kernelpack.emulator.models.fault import UnitFault
from kernelpack.emulator.models.mma_descriptor import (
    SharedDescriptor,
    operand_addresses,
    tcgen05_descriptor,
    wgmma_descriptor,
)
from kernelpack.errors import UnsupportedError
from kernelpack.spec.tensormap import Swizzle


def descriptor(swizzle=Swizzle.NONE, leading=0, stride=0, start=0, **rest):
    return SharedDescriptor(
        unit="tcgen05",
        start=start,
        leading_bytes=leading,
        stride_bytes=stride,
        swizzle=swizzle,
        **rest,
    )


def cute(shape, strides, rows, columns):
    """Offset of every (row, column) of a CuTe layout ((r...), (c...)):((...), (...))."""
    row_digits = np.unravel_index(np.arange(rows), shape[0], order="F")
    column_digits = np.unravel_index(np.arange(columns), shape[1], order="F")
    row = sum(digit * stride for digit, stride in zip(row_digits, strides[0], strict=True))
    column = sum(digit * stride for digit, stride in zip(column_digits, strides[1], strict=True))
    return row[:, None] + column


# Worked examples of 9.7.16.3.3: shape, strides (elements), element bytes, LBO and SBO in bytes.
EXAMPLES = {
    "k-none-tf32": (
        *(((8, 2), (4, 4)), ((4, 32), (1, 64)), 4),
        *(False, Swizzle.NONE, 64 * 4, 32 * 4),
    ),
    "k-32B-tf32": (*(((8, 2), (4, 4)), ((8, 64), (1, 4)), 4), *(False, Swizzle.B32, 0, 64 * 4)),
    "mn-none-bf16": (
        *(((8, 1, 2), (8, 2)), ((1, 8, 64), (8, 128)), 2),
        *(True, Swizzle.NONE, 128 * 2, 64 * 2),
    ),
    "mn-32B-bf16": (
        *(((8, 2, 2), (8, 2)), ((1, 8, 128), (16, 256)), 2),
        *(True, Swizzle.B32, 128 * 2, 256 * 2),
    ),
    "mn-64B-bf16": (
        *(((8, 4, 2), (8, 2)), ((1, 8, 256), (32, 512)), 2),
        *(True, Swizzle.B64, 256 * 2, 512 * 2),
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_manuals_examples(name):
    """The worked layouts of the manual, element by element, swizzled."""
    shape, strides, size, mn_major, mode, leading, stride = EXAMPLES[name]
    rows, columns = np.prod(shape[0]), np.prod(shape[1])
    # A row of a swizzled K-major layout ends with its pattern.
    columns = min(columns, swizzle.PATTERNS[mode].span_bytes // size) if not mn_major else columns
    columns = np.prod(shape[1]) if mode is Swizzle.NONE else columns
    expected = swizzle.apply(mode, cute(shape, strides, rows, columns) * size)
    addresses = operand_addresses(
        descriptor(mode, leading, stride), mn_major=mn_major, rows=rows, k=columns, bits=8 * size
    )
    assert np.array_equal(expected, addresses[:, ::size])


@pytest.mark.parametrize(
    ("mode", "leading", "stride"),
    [
        (Swizzle.NONE, 128, 256),
        (Swizzle.B32, 0, 256),
        (Swizzle.B64, 0, 512),
        (Swizzle.B128, 0, 1024),
    ],
)
def test_k_major_tile_reads_every_byte_once(mode, leading, stride):
    """Stepping the start along K through a dense 64-row tile reads each byte exactly once."""
    span = swizzle.PATTERNS[mode].span_bytes if mode is not Swizzle.NONE else 32
    steps = [
        operand_addresses(
            descriptor(mode, leading, stride, 4096 + at), mn_major=False, rows=64, k=16, bits=16
        )
        for at in range(0, span, 32)
    ]
    assert np.array_equal(4096 + np.arange(64 * span), np.sort(np.concatenate(steps, None)))


@pytest.mark.parametrize("element", [1, 2])
@pytest.mark.parametrize("mode", [Swizzle.B32, Swizzle.B64, Swizzle.B128])
def test_mn_major_tile_reads_every_byte_once(mode, element):
    """One K step of 32 lines covers 32 lines of the tile completely."""
    span = swizzle.PATTERNS[mode].span_bytes
    addresses = operand_addresses(
        descriptor(mode, 0, 8 * span), mn_major=True, rows=span // element, k=32, bits=8 * element
    )
    assert np.array_equal(np.arange(32 * span), np.sort(addresses, None))


def test_32_byte_atoms_for_transposed_tf32():
    """The 128B swizzle with 32-byte atoms has 4 lines of 32 words a pattern."""
    addresses = operand_addresses(
        descriptor(Swizzle.B128_ATOM32, 0, 512), mn_major=True, rows=32, k=8, bits=32
    )
    assert np.array_equal(np.arange(1024), np.sort(addresses, None))
    assert addresses[0, ::4].tolist() == [0, 160, 320, 480, 512, 672, 832, 992]


def test_swizzle_is_absolute():
    """The same tile one line lower is permuted as its addresses say, not as its rows."""
    high = operand_addresses(
        descriptor(Swizzle.B128, 0, 1024, start=128), mn_major=False, rows=8, k=16, bits=16
    )
    assert high[0, 0] == 128 + 16


def test_padded_nibbles_leave_the_padding_out():
    """Of each 16 bytes the first 8 hold 16 FP4 elements."""
    addresses = operand_addresses(
        descriptor(Swizzle.B128, 0, 1024), mn_major=False, rows=1, k=32, bits=4, padded=True
    )
    assert addresses.tolist() == [[*range(8), *range(16, 24)]]


def test_padded_bytes_have_no_padding():
    """8-bit elements fill their containers."""
    addresses = operand_addresses(
        descriptor(Swizzle.B128, 0, 1024), mn_major=False, rows=1, k=32, bits=8, padded=True
    )
    assert addresses.tolist() == [list(range(32))]


def test_decode_tcgen05():
    """Every field at its bits."""
    raw = 0x123 | 0x45 << 16 | 0x67 << 32 | 1 << 46 | 3 << 49 | 1 << 52 | 2 << 61
    assert tcgen05_descriptor(raw) == descriptor(
        Swizzle.B128, 0x450, 0x670, 0x1230, base_offset=3, absolute=True
    )


def test_decode_wgmma():
    """wgmma has its own swizzle codes and no constant field."""
    decoded = wgmma_descriptor(0x123 | 0x45 << 16 | 0x67 << 32 | 2 << 62)
    assert (decoded.start, decoded.leading_bytes, decoded.stride_bytes) == (0x1230, 0x450, 0x670)
    assert decoded.swizzle is Swizzle.B64


@pytest.mark.parametrize("mode", [3, 5, 7])
def test_invalid_swizzle_mode(mode):
    """Modes 3, 5 and 7 do not exist."""
    with pytest.raises(UnitFault, match=f"mode {mode}"):
        tcgen05_descriptor(mode << 61)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"version": 0}, "descriptor-version"),
        ({"reserved": 1}, "descriptor-reserved"),
        ({"start": 128}, "descriptor-base-offset"),
    ],
)
def test_lint(change, rule):
    """What a wrong descriptor is reported as."""
    found = mma_descriptor.lint(descriptor(Swizzle.B128, 0, 1024, **change))
    assert [m.rule.name for m in found] == [rule]


@pytest.mark.parametrize("start", [0, 32, 96, 1024, 64])
def test_lint_is_silent_inside_the_first_line(start):
    """Stepping along K inside an atom is what every kernel does."""
    assert not mma_descriptor.lint(descriptor(Swizzle.B128, 0, 1024, start))


def test_absolute_leading_address_is_not_modelled():
    """The second buffer of sm_103a is refused, not approximated."""
    with pytest.raises(UnsupportedError, match="not modelled"):
        operand_addresses(
            descriptor(Swizzle.B128, 0, 1024, absolute=True),
            mn_major=False,
            rows=8,
            k=16,
            bits=16,
        )


@pytest.mark.parametrize(("start", "base_offset"), [(128, 1), (3 * 128, 3), (9 * 128, 1)])
def test_base_offset_moves_the_pattern(start, base_offset):
    """A tile that starts in line n with base offset n looks like one at the pattern's start."""
    how = {"mn_major": False, "rows": 7, "k": 16, "bits": 16}
    moved = operand_addresses(
        descriptor(Swizzle.B128, 0, 1024, start, base_offset=base_offset), **how
    )
    assert np.array_equal(
        operand_addresses(descriptor(Swizzle.B128, 0, 1024), **how), moved - start
    )


def test_transposed_nibbles_are_not_modelled():
    """Rows of sub-byte elements would share bytes."""
    with pytest.raises(UnsupportedError, match="4-bit"):
        operand_addresses(descriptor(), mn_major=True, rows=8, k=32, bits=4)
