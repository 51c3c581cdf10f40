"""What was last done to each cell of a memory, and by whom."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NOBODY = 0
"""In `writer`, which holds agents + 1."""
_FIRST_CELLS = 1 << 16
"""Cells a shadow starts with: all of a shared memory, the first part of a global one."""
GENERIC, ATOMIC = 1, 2
Cells = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Write:
    """Who wrote, at which step, how, and the serial number of the write."""

    agent: int
    step: int
    how: int
    serial: int


class Shadow:
    """The last accesses to each cell.

    Per cell: the last writer plus one, its step, which bytes it wrote, how, and the serial number
    of the write. Per agent: the step of its last read of each cell.
    """

    def __init__(self, cells: int) -> None:
        self.cells = cells
        size = min(cells, _FIRST_CELLS)
        self.writer = np.zeros(size, np.int32)
        self.step = np.zeros(size, np.int64)
        self.bytes = np.zeros(size, np.uint8)
        self.how = np.zeros(size, np.uint8)
        self.serial = np.zeros(size, np.int64)
        self.reads: dict[int, NDArray[np.int32]] = {}
        self.latest_read: dict[int, int] = {}
        self.latest_write = 0
        """The serial number of the last write."""
        self.spare: list[NDArray[np.int32]] = []

    def clear(self) -> None:
        """Forget everything, for a new owner."""
        self.writer.fill(NOBODY)
        self.spare += self.reads.values()
        self.reads.clear()
        self.latest_read.clear()
        self.latest_write = 0

    def writers(self, cells: Cells) -> NDArray[np.int32]:
        """Who wrote each cell last, plus one; the shadow grows when a cell is beyond it."""
        try:
            return self.writer[cells]
        except IndexError:
            self._grow(int(cells.max()) + 1)
            return self.writer[cells]

    def _grow(self, cells: int) -> None:
        size = max(cells, min(2 * len(self.writer), self.cells))
        for name in ("writer", "step", "bytes", "how", "serial"):
            old = getattr(self, name)
            new = np.zeros(size, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def wrote(self, cells: Cells, mask: int | NDArray[np.uint8], write: Write) -> None:
        """Note a write. Bytes that the same agent wrote in the same step stay noted."""
        if isinstance(mask, int) and mask == 15:
            self.bytes[cells] = 15
        else:
            same = (self.writer[cells] == write.agent + 1) & (self.step[cells] == write.step)
            self.bytes[cells] = np.where(same, self.bytes[cells], np.uint8(0))
            np.bitwise_or.at(self.bytes, cells, np.asarray(mask, np.uint8))
        self.writer[cells] = write.agent + 1
        self.step[cells] = write.step
        self.how[cells] = write.how
        self.serial[cells] = write.serial
        self.latest_write = write.serial

    def read(self, cells: Cells, agent: int, step: int) -> None:
        """Note a read."""
        steps = self.reads.get(agent)
        if steps is None:
            steps = self.spare.pop() if self.spare else np.empty(self.cells, np.int32)
            steps.fill(0)
            self.reads[agent] = steps
        steps[cells] = step
        self.latest_read[agent] = step
