"""What was last done to each cell of a memory, and by whom."""

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.events import Unit

NOBODY = 0
"""In `writer`, which holds agents + 1, so that a large shadow costs nothing until it is used."""
GENERIC, ATOMIC = 1, 2
Cells = NDArray[np.intp]


class Shadow:
    """Per cell: the last writer, its step, which bytes it wrote, how, and the serial number of
    the write. Per agent: the step of its last read of each cell."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.writer = np.zeros(unit.cells, np.int32)
        self.step = np.zeros(unit.cells, np.int64)
        self.bytes = np.zeros(unit.cells, np.uint8)
        self.how = np.zeros(unit.cells, np.uint8)
        self.serial = np.zeros(unit.cells, np.int64)
        self.reads: dict[int, NDArray[np.int32]] = {}
        self.latest_read: dict[int, int] = {}

    def wrote(
        self, cells: Cells, agent: int, step: int, mask: "int | NDArray[np.uint8]", how: int,
        serial: int,
    ) -> None:  # fmt: skip
        """Note a write. Bytes that the same agent wrote in the same step stay noted."""
        if not isinstance(mask, int) or mask != 15:
            same = (self.writer[cells] == agent + 1) & (self.step[cells] == step)
            kept = np.where(same, self.bytes[cells], np.uint8(0))
            if isinstance(mask, int):
                self.bytes[cells] = kept | np.uint8(mask)
            else:
                self.bytes[cells] = kept
                np.bitwise_or.at(self.bytes, cells, mask)
        else:
            self.bytes[cells] = 15
        self.writer[cells] = agent + 1
        self.step[cells] = step
        self.how[cells] = how
        self.serial[cells] = serial

    def read(self, cells: Cells, agent: int, step: int) -> None:
        """Note a read."""
        steps = self.reads.get(agent)
        if steps is None:
            steps = self.reads[agent] = np.zeros(self.unit.cells, np.int32)
        steps[cells] = step
        self.latest_read[agent] = step
