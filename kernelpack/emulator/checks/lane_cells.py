"""Who wrote each cell of a memory last, lane by lane; and who reached it by an atomic operation."""

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.checks.shadow import Cells

_FIRST_CELLS = 1 << 16
SEVERAL = -1
"""In place of a lane: several lanes of one warp."""
_COLUMNS = {
    "writer": np.int32,
    "time": np.int64,
    "lane": np.int8,
    "reader": np.int64,
    "atomic": np.int32,
    "atomic_time": np.int64,
    "atomic_lane": np.int8,
}


class LaneCells:
    """Per cell: the warp that wrote last (plus one), when, and its lane; which operation read it.

    And the same of the last atomic operation. A warp is its agent, a time a count of the check that
    asks, an operation its number.
    """

    writer: NDArray[np.int32]
    time: NDArray[np.int64]
    lane: NDArray[np.int8]
    reader: NDArray[np.int64]
    atomic: NDArray[np.int32]
    atomic_time: NDArray[np.int64]
    atomic_lane: NDArray[np.int8]

    def __init__(self, cells: int) -> None:
        self.cells = cells
        for name, kind in _COLUMNS.items():
            setattr(self, name, np.zeros(min(cells, _FIRST_CELLS), kind))

    def hold(self, cells: Cells) -> None:
        """Grow where a cell is beyond what is held."""
        last = int(cells.max())
        if last < len(self.writer):
            return
        size = max(last + 1, min(2 * len(self.writer), self.cells))
        for name, kind in _COLUMNS.items():
            old, new = getattr(self, name), np.zeros(size, kind)
            new[: len(old)] = old
            setattr(self, name, new)
