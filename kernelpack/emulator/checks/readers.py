"""Who read each cell of global memory: the last two agents that did, which differ.

That is enough to find whoever overwrites what nobody is known to have read before it: of two
readers one at least is another agent. It is not enough for a third one; to keep all readers of a
device's memory would take more room than the memory.
"""

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.checks.shadow import PARTIAL, Accesses, Cells, Numbers

_FIRST_CELLS = 1 << 16
_NAMES = ("last", "other", "bytes")


class Readers:
    """The numbers of the last reads; `bytes` says which bytes a partial last one read."""

    def __init__(self, reads: Accesses) -> None:
        self.reads = reads
        self.last: Numbers = np.zeros(_FIRST_CELLS, np.int32)
        self.other: Numbers = np.zeros(_FIRST_CELLS, np.int32)
        self.bytes = np.zeros(_FIRST_CELLS, np.uint8)

    def clear(self) -> None:
        """Forget everything."""
        for name in _NAMES:
            getattr(self, name).fill(0)

    def note(self, cells: Cells, mask: int | NDArray[np.uint8], number: int) -> None:
        """A read of cells; `mask` are the bytes of each, where it is a partial one."""
        before = self._last(cells)
        agent = self.reads.agents[number]
        first = int(before[0])
        if not (self.reads.agents[first] == agent and not np.count_nonzero(before != first)):
            differs = self.reads.agents[before] != agent
            self.other[cells] = np.where(differs, before, self.other[cells])
        if self.reads.how[number] & PARTIAL:
            mine = self.reads.agents[before] == agent
            kept = np.where(mine, self.touched(cells, before), np.uint8(0))
            self.bytes[cells] = kept
            np.bitwise_or.at(self.bytes, cells, np.asarray(mask, np.uint8))
        self.last[cells] = number

    def touched(self, cells: Cells, numbers: Numbers) -> NDArray[np.uint8]:
        """Which bytes of each cell its last read read, if these are the last ones."""
        partial = self.reads.how[numbers] & PARTIAL
        return np.where(partial, self.bytes[cells], np.uint8(15))

    def of(self, cells: Cells) -> tuple[tuple[Numbers, NDArray[np.uint8]], ...]:
        """The last reads of each cell with their bytes, and those of another agent before."""
        last = self._last(cells)
        if not np.count_nonzero(last):
            return ()
        other = self.other[cells]
        whole = np.where(self.reads.how[other] & PARTIAL, np.uint8(0), np.uint8(15))
        return (last, self.touched(cells, last)), (other, whole)

    def _last(self, cells: Cells) -> Numbers:
        """The number of each cell's last read; grows when a cell is beyond what is held."""
        try:
            return self.last[cells]
        except IndexError:
            size = max(int(cells.max()) + 1, 2 * len(self.last))
            for name in _NAMES:
                old = getattr(self, name)
                new = np.zeros(size, old.dtype)
                new[: len(old)] = old
                setattr(self, name, new)
            return self.last[cells]
