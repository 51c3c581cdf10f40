"""The 128 x 4 scale atom."""

import numpy as np
import pytest

from kernelpack.formats.scale_layout import ATOM_BYTES, from_atoms, offset, storage_bytes, to_atoms


@pytest.mark.parametrize(
    ("row", "block", "expected"),
    [(0, 0, 0), (0, 3, 3), (1, 0, 16), (31, 0, 496), (32, 0, 4), (127, 3, 511), (0, 4, 512)],
)
def test_offset_inside_the_first_atoms(row, block, expected):
    """32 rows step 16 bytes, groups of 32 rows 4 bytes, blocks 1 byte, atoms 512 bytes."""
    assert expected == offset(row, block, 8)


def test_second_row_of_atoms():
    """Row 128 starts after all atoms of the first 128 rows."""
    assert offset(128, 0, 8) == 2 * ATOM_BYTES


def test_atom_is_a_bijection():
    """Every byte of whole atoms is one scale."""
    offsets = offset(np.arange(256)[:, None], np.arange(8), 8)
    assert np.array_equal(np.arange(256 * 8), np.sort(offsets.ravel()))


@pytest.mark.parametrize(
    ("rows", "blocks", "expected"), [(128, 4, 512), (1, 1, 512), (129, 5, 2048)]
)
def test_storage_is_whole_atoms(rows, blocks, expected):
    """Ragged sizes are padded up."""
    assert expected == storage_bytes(rows, blocks)


@pytest.mark.parametrize("shape", [(128, 4), (200, 6), (7, 1)])
def test_atoms_keep_every_scale(shape):
    """Laying out and reading back is the identity."""
    scales = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    assert np.array_equal(scales, from_atoms(to_atoms(scales), *shape))


def test_padding_value():
    """Padding is what the caller wants there."""
    assert to_atoms(np.zeros((1, 1), np.uint8), fill=0x7F)[1:].tolist() == [0x7F] * 511
