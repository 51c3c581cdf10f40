"""Who read each cell of global memory: the last two agents that did, which differ.

That is enough to find whoever overwrites what nobody is known to have read before it: of two
readers one at least is another agent. It is not enough for a third one; to keep all readers of a
device's memory would take more room than the memory.
"""

import numpy as np

from kernelpack.emulator.checks.reads import Cells
from kernelpack.emulator.checks.shadow import Accesses, Numbers

_FIRST_CELLS = 1 << 16
_NAMES = ("last", "other")


class Readers:
    """The numbers of the last reads of each cell, or of each byte."""

    def __init__(self, reads: Accesses) -> None:
        self.reads, self.is_used = reads, False
        self.last: Numbers = np.zeros(_FIRST_CELLS, np.int32)
        self.other: Numbers = np.zeros(_FIRST_CELLS, np.int32)

    def note(self, cells: Cells, number: int) -> None:
        """A read of cells."""
        self.is_used = True
        before = self._last(cells)
        agent = self.reads.agents[number]
        first = int(before[0])
        if not (self.reads.agents[first] == agent and not np.count_nonzero(before != first)):
            differs = self.reads.agents[before] != agent
            self.other[cells] = np.where(differs, before, self.other[cells])
        self.last[cells] = number

    def of(self, cells: Cells) -> tuple[Numbers, ...]:
        """The last reads of each cell, and those of another agent before."""
        last = self._last(cells)
        return (last, self.other[cells]) if np.count_nonzero(last) else ()

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
