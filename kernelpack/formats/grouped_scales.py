"""Scales of blocks of 16 elements as NVFP4 kernels read them, for rows that may form groups.

A scale tensor is [row blocks, ceil(k / 64), 32, 4, 4]: atoms of 128 rows by 4 blocks along K (see
`scale_layout`). The scale of row r and block b is element [r // 128, b // 4, r % 32,
r % 128 // 32, b % 4]; padding is zero.

Token rows of one group are adjacent: group g owns rows `offsets[g] … offsets[g + 1]`. Its scales
begin a fresh row block, at block `offsets[g] // 128 + group_scale_offsets[g]`.

Scales may be numpy arrays or torch tensors, of any type of one byte; offsets are numpy arrays,
sequences, or tensors in host memory.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpack.errors import ProblemError
from kernelpack.formats.scale_layout import BLOCKS, ROWS

Scales = Any
"""A numpy array or a torch tensor."""

Offsets = npt.ArrayLike
"""First row of each group, then the number of rows: [groups + 1]."""


def group_scale_offsets(offsets: Offsets) -> npt.NDArray[np.uint32]:
    """The addends to `offsets[g] // 128` that give group g's first row block: [groups].

    Raises:
        ProblemError: offsets do not start with 0, fall, or are not a vector of integers.

    """
    rows = _checked(offsets)
    return (_block_starts(rows)[:-1] - rows[:-1] // ROWS).astype(np.uint32)


def scale_blocks(offsets: Offsets) -> int:
    """Row blocks of a scale tensor that holds every group; at most rows // 128 + groups.

    Raises:
        ProblemError: as of `group_scale_offsets`.

    """
    return int(_block_starts(_checked(offsets))[-1])


def scale_rows(offsets: Offsets) -> npt.NDArray[np.int64]:
    """The row of the scale tensor that each token row has: [rows].

    Raises:
        ProblemError: as of `group_scale_offsets`.

    """
    rows = _checked(offsets)
    moved = _block_starts(rows)[:-1] * ROWS - rows[:-1]
    return np.arange(rows[-1]) + np.repeat(moved, np.diff(rows))


def interleave(scales: Scales) -> Scales:
    """Lay [..., rows, k / 16] scales out as [..., ceil(rows / 128), ceil(k / 64), 32, 4, 4].

    Raises:
        ProblemError: there are fewer than two dimensions.

    """
    if len(scales.shape) < 2:
        rule = f"scales must have the shape [..., rows, k / 16], not {list(scales.shape)}"
        raise ProblemError(rule)
    *experts, rows, blocks = scales.shape
    row_atoms, block_atoms = -(-rows // ROWS), -(-blocks // BLOCKS)
    padded = _zeros(scales, (*experts, row_atoms * ROWS, block_atoms * BLOCKS))
    padded[..., :rows, :blocks] = scales
    tensor = _zeros(scales, (*experts, row_atoms, block_atoms, 32, 4, BLOCKS))
    tensor[...] = padded.reshape(*experts, row_atoms, 4, 32, block_atoms, BLOCKS).swapaxes(-4, -2)
    return tensor


def deinterleave(tensor: Scales, rows: int, blocks: int) -> Scales:
    """Read [..., rows, blocks] scales, blocks = k / 16, from [..., row blocks, k blocks, 32, 4, 4].

    Raises:
        ProblemError: the tensor has another shape, or does not hold so many rows or blocks.

    """
    shape = tuple(tensor.shape)
    if len(shape) < 5 or shape[-3:] != (32, 4, BLOCKS):
        rule = f"scales must have the shape [..., row blocks, k blocks, 32, 4, 4], not {[*shape]}"
        raise ProblemError(rule)
    *experts, row_atoms, block_atoms = shape[:-3]
    held = (row_atoms * ROWS, block_atoms * BLOCKS)
    if not (0 <= rows <= held[0] and 0 <= blocks <= held[1]):
        rule = f"scales of {held[0]} rows by {held[1]} blocks do not hold {rows} by {blocks}"
        raise ProblemError(rule)
    return tensor.swapaxes(-4, -2).reshape(*experts, *held)[..., :rows, :blocks]


def interleave_groups(scales: Scales, offsets: Offsets, row_blocks: int | None = None) -> Scales:
    """Lay [rows, k / 16] scales out group by group: [row blocks, ceil(k / 64), 32, 4, 4].

    Args:
        scales: a row for each token row.
        offsets: first row of each group, then the number of rows.
        row_blocks: how many the tensor has; without it as many as the groups need.

    Raises:
        ProblemError: offsets are wrong, or count other rows than there are, or need more blocks.

    """
    placed, needed = scale_rows(offsets), scale_blocks(offsets)
    if tuple(scales.shape[:-1]) != placed.shape:
        rule = f"scales must be a matrix of {placed.size} rows, as the offsets say"
        raise ProblemError(f"{rule}; the shape is {list(scales.shape)}")
    row_blocks = needed if row_blocks is None else row_blocks
    if row_blocks < needed:
        raise ProblemError(f"the groups need {needed} row blocks of scales, not {row_blocks}")
    spread = _zeros(scales, (row_blocks * ROWS, scales.shape[1]))
    spread[placed] = scales
    return interleave(spread)


def _block_starts(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The first row block of each group, then the number of blocks."""
    blocks = -(-np.diff(rows) // ROWS)
    return np.concatenate(([0], np.cumsum(blocks)))


def _checked(offsets: Offsets) -> npt.NDArray[np.int64]:
    rows = np.asarray(offsets)
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
        rule = "offsets must be integers [groups + 1]"
        raise ProblemError(f"{rule}, not {rows.dtype} {list(rows.shape)}")
    rows = rows.astype(np.int64)
    if rows[0] != 0:
        raise ProblemError(f"offsets must start with 0, not {rows[0]}")
    falls = np.diff(rows) < 0
    if falls.any():
        group = int(falls.argmax())
        raise ProblemError(
            f"offsets must not fall: group {group} is {rows[group]} to {rows[group + 1]}"
        )
    return rows


def _zeros(like: Scales, shape: tuple[int, ...]) -> Scales:
    """Zeros of the same kind, type and device."""
    return np.zeros(shape, like.dtype) if isinstance(like, np.ndarray) else like.new_zeros(shape)
