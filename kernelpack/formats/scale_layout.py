"""Where block scales are in memory: the 128 x 4 atom that tensor memory wants.

One atom holds the scales of 128 rows and 4 blocks along K in 512 bytes, so that a plain copy of
32 rows x 16 bytes brings it to tensor memory: row r, block b at byte
`(r % 32) * 16 + (r / 32) * 4 + b`. Atoms follow each other along K, then along rows.
Source: PTX ISA 9.1, 9.7.16.10.7 (scale factors); the layout cuBLAS and CUTLASS call SfAtom.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

ROWS = 128
BLOCKS = 4
ATOM_BYTES = ROWS * BLOCKS

Scales = npt.NDArray[np.uint8]


def storage_bytes(rows: int, blocks: int) -> int:
    """Bytes of the scales of a rows x blocks matrix, padded to whole atoms."""
    return -(-rows // ROWS) * -(-blocks // BLOCKS) * ATOM_BYTES


def offset(
    row: npt.ArrayLike, block: npt.ArrayLike, blocks_per_row: int
) -> npt.NDArray[np.signedinteger[Any]]:
    """Byte offset of a scale; `blocks_per_row` is the width of the whole matrix, in blocks."""
    r, b = np.asarray(row), np.asarray(block)
    atoms_per_row = -(-blocks_per_row // BLOCKS)
    atom = (r // ROWS) * atoms_per_row + b // BLOCKS
    inside = (r % 32) * 16 + (r % ROWS) // 32 * BLOCKS + b % BLOCKS
    offsets: npt.NDArray[np.signedinteger[Any]] = atom * ATOM_BYTES + inside
    return offsets


def to_atoms(scales: Scales, fill: int = 0) -> Scales:
    """Lay a (rows, blocks) matrix of scale codes out in atoms; padding is `fill`."""
    rows, blocks = scales.shape
    stored = np.full(storage_bytes(rows, blocks), fill, np.uint8)
    stored[offset(np.arange(rows)[:, None], np.arange(blocks), blocks)] = scales
    return stored


def from_atoms(stored: Scales, rows: int, blocks: int) -> Scales:
    """Read the (rows, blocks) matrix back."""
    scales: Scales = stored[offset(np.arange(rows)[:, None], np.arange(blocks), blocks)]
    return scales
