"""Scales of grouped rows: where each is, and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpack.errors import ProblemError
from kernelpack.formats.grouped_scales import (
    deinterleave,
    group_scale_offsets,
    interleave,
    interleave_groups,
    scale_blocks,
    scale_rows,
)
from kernelpack.formats.scale_layout import from_atoms, offset

COUNTS = st.lists(st.integers(0, 400), max_size=6)
GOLDEN = [0, 65, 1092, 1478]


def offsets(counts):
    return np.cumsum([0, *counts])


def codes(*shape):
    return np.random.default_rng(2).integers(1, 127, shape).astype(np.uint8)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (GOLDEN, [0, 1, 2]),
        ([0], []),
        ([0, 0], [0]),
        ([0, 128, 256], [0, 0]),
        ([0, 0, 1, 1, 3], [0, 0, 1, 1]),
        ([0, 129, 130], [0, 1]),
    ],
)
def test_group_scale_offsets(rows, expected):
    """Row blocks before a group, less its first row in whole blocks; empty groups take none."""
    found = group_scale_offsets(rows)
    assert (found.tolist(), found.dtype) == (expected, np.uint32)


@pytest.mark.parametrize(("rows", "expected"), [(GOLDEN, 14), ([0], 0), ([0, 0, 1], 1)])
def test_scale_blocks(rows, expected):
    """Every group takes whole blocks of 128 rows."""
    assert expected == scale_blocks(rows)


def test_scale_rows():
    """A token's row: its group's first block, then its place in the group."""
    placed = scale_rows(GOLDEN)
    assert placed[[0, 64, 65, 1091, 1092, 1477]].tolist() == [0, 64, 128, 1154, 1280, 1665]


@given(counts=COUNTS)
def test_offsets_find_the_first_block(counts):
    """offsets[g] // 128 + group_scale_offsets[g] is the block where the group's scales begin."""
    rows = offsets(counts)
    starts = rows[:-1] // 128 + group_scale_offsets(rows)
    blocks = [-(-count // 128) for count in counts]
    assert offsets(blocks)[:-1].tolist() == starts.tolist()


@given(counts=COUNTS)
def test_blocks_have_a_bound(counts):
    """rows // 128 + groups row blocks are always enough."""
    assert scale_blocks(offsets(counts)) <= sum(counts) // 128 + len(counts)


@given(rows=st.integers(0, 300), blocks=st.integers(0, 10), experts=st.lists(st.integers(0, 3)))
def test_deinterleave_undoes_interleave(rows, blocks, experts):
    """Every scale comes back at its place, for each expert of a stack."""
    scales = codes(*experts[:2], rows, blocks)
    assert np.array_equal(scales, deinterleave(interleave(scales), rows, blocks))


@given(rows=st.integers(1, 300), blocks=st.integers(1, 10))
def test_bytes_are_of_the_scale_layout(rows, blocks):
    """The tensor's bytes are the atoms of `scale_layout`."""
    scales = codes(rows, blocks)
    assert np.array_equal(scales, from_atoms(interleave(scales).ravel(), rows, blocks))


@pytest.mark.parametrize(
    ("row", "block", "place"),
    [(0, 0, (0, 0, 0, 0, 0)), (33, 6, (0, 1, 1, 1, 2)), (259, 9, (2, 2, 3, 0, 1))],
)
def test_place(row, block, place):
    """Row and block find their atom, and their place in it."""
    scales = np.zeros((300, 10), np.uint8)
    scales[row, block] = 1
    assert [place] == [tuple(found) for found in np.argwhere(interleave(scales)).tolist()]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((200, 6), (2, 2, 32, 4, 4)), ((3, 129, 4), (3, 2, 1, 32, 4, 4)), ((0, 4), (0, 1, 32, 4, 4))],
)
def test_shape(shape, expected):
    """Rows are padded to 128 and blocks to 4; a stack keeps its dimension."""
    assert expected == interleave(codes(*shape)).shape


def test_padding_is_zero():
    """What is no scale is zero."""
    assert np.count_nonzero(interleave(codes(130, 5))) == 130 * 5


def test_interleaved_is_row_major():
    """A kernel may read the tensor as it lies."""
    assert interleave(codes(200, 6)).flags.c_contiguous


@given(counts=COUNTS, blocks=st.integers(1, 6), spare=st.integers(0, 2))
def test_groups(counts, blocks, spare):
    """Token m of group g has its scale at row (m // 128 + soff)-block, place m - offsets[g]."""
    rows = offsets(counts)
    scales = codes(rows[-1], blocks)
    tensor = interleave_groups(scales, rows, scale_blocks(rows) + spare)
    flat = deinterleave(tensor, tensor.shape[0] * 128, blocks)
    assert np.array_equal(scales, flat[scale_rows(rows)])
    assert np.count_nonzero(tensor) == scales.size


def test_groups_by_the_byte_formula():
    """The golden groups' scales lie where the kernels' byte formula says."""
    scales = codes(1478, 6)
    tensor = interleave_groups(scales, GOLDEN).ravel()
    row = (65 // 128 + 1) * 128 + 7
    assert tensor[offset(row, 5, 6)] == scales[65 + 7, 5]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([1, 2], "offsets must start with 0, not 1"),
        ([0, 5, 3], "offsets must not fall: group 1 is 5 to 3"),
        ([], "offsets must be integers"),
        ([0.0, 1.0], "offsets must be integers"),
        ([[0, 1]], "offsets must be integers"),
    ],
)
def test_bad_offsets(rows, message):
    """Offsets that do not describe groups are refused."""
    with pytest.raises(ProblemError, match=message):
        group_scale_offsets(rows)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interleave(codes(5)), r"must have the shape \[..., rows, k / 16\], not \[5\]"),
        (lambda: deinterleave(codes(1, 512), 1, 1), "row blocks, k blocks, 32, 4, 4"),
        (lambda: deinterleave(codes(1, 1, 4, 32, 4), 1, 1), "row blocks, k blocks, 32, 4, 4"),
        (lambda: deinterleave(codes(1, 1, 32, 4, 4), 129, 1), "do not hold 129 by 1"),
        (lambda: deinterleave(codes(1, 1, 32, 4, 4), 1, 5), "do not hold 1 by 5"),
        (lambda: interleave_groups(codes(4, 2), [0, 5]), "a matrix of 5 rows"),
        (lambda: interleave_groups(codes(5, 2, 2), [0, 5]), "a matrix of 5 rows"),
        (lambda: interleave_groups(codes(5, 2), [0, 2, 5], 1), "need 2 row blocks of scales"),
    ],
)
def test_bad_shapes(call, message):
    """A shape that cannot be is refused with what would be right."""
    with pytest.raises(ProblemError, match=message):
        call()


class Tensor:
    """What of a torch tensor the functions use, over a numpy array."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def new_zeros(self, shape):
        return Tensor(np.zeros(shape, self.array.dtype))

    def reshape(self, *shape):
        return Tensor(self.array.reshape(*shape))

    def swapaxes(self, first, second):
        return Tensor(self.array.swapaxes(first, second))

    def __getitem__(self, index):
        return Tensor(self.array[index])

    def __setitem__(self, index, value):
        self.array[index] = value.array


def test_tensors():
    """Arrays of torch go through the same functions and stay torch's."""
    scales = codes(1478, 6)
    tensor = interleave_groups(Tensor(scales), GOLDEN)
    back = deinterleave(tensor, 64, 6)
    assert (type(tensor), type(back)) == (Tensor, Tensor)
    assert np.array_equal(interleave_groups(scales, GOLDEN), tensor.array)
    assert np.array_equal(scales[:64], back.array)
