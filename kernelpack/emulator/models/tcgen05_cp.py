"""tcgen05.cp: rows of shared memory that become lanes of tensor memory, copied to several warps.

The source is a K-major shared-memory descriptor. Decompression (`.b8x16.*`), `.4x256b` and
tcgen05.shift are not modelled: the manual gives them as pictures only.
Source: PTX ISA 9.1, 9.7.16.9.2.
"""

from dataclasses import dataclass

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.models.fault import require
from kernelpack.emulator.models.tensor_memory import COLUMNS, Cells, split
from kernelpack.errors import UnsupportedError

_ROW = np.arange(128)
# (shape, multicast) -> rows, bytes a row, first lane of each row, lanes between copies, copies.
_FORMS = {
    ("128x256b", ""): (128, 32, _ROW, 0, 1),
    ("128x128b", ""): (128, 16, _ROW, 0, 1),
    ("64x128b", "warpx2::02_13"): (64, 16, _ROW[:64], 64, 2),
    ("64x128b", "warpx2::01_23"): (64, 16, _ROW[:64] // 32 * 64 + _ROW[:64] % 32, 32, 2),
    ("32x128b", "warpx4"): (32, 16, _ROW[:32], 32, 4),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPlan:
    """`rows` x `row_bytes` of shared memory go to `cells`: (copies, rows, row_bytes / 4)."""

    rows: int
    row_bytes: int
    cells: Cells


def copy(shape: str, multicast: str, address: int) -> CopyPlan:
    """Where a copy writes; `multicast` is the qualifier without its dot, or empty."""
    if (shape, multicast) not in _FORMS:
        form = ".".join(filter(None, ("tcgen05.cp", shape, multicast)))
        raise UnsupportedError(f"{form} is not modelled")
    rows, row_bytes, first, apart, copies = _FORMS[shape, multicast]
    lane, column = split(address)
    words = row_bytes // 4
    require(
        lane == 0 and column + words <= COLUMNS,
        rules.TENSOR_MEMORY_BOUNDS_OF_COPY,
        f"tcgen05.cp.{shape} to lane {lane}, columns {column} to {column + words - 1}",
    )
    lanes = first[None, :, None] + apart * np.arange(copies)[:, None, None]
    return CopyPlan(
        rows=rows, row_bytes=row_bytes, cells=Cells(lanes, column + np.arange(words)[None, None])
    )
