"""When each agent read each cell of a memory last, and by which instruction.

The two are one number, a *stamp*: the step of the agent, and the index of the instruction below it.
Of two stamps of an agent the later one is the greater, so long as their steps differ.
"""

import numpy as np
from numpy.typing import NDArray

_PLACE_BITS = 24
"""More than the instructions of any entry."""
_PENDING_KEPT = 256
Cells = NDArray[np.intp]
Stamps = NDArray[np.int64]


def stamp(step: int, place: int) -> int:
    """Both in one number."""
    return step << _PLACE_BITS | place


def after(step: int) -> int:
    """The least stamp after a step."""
    return (step + 1) << _PLACE_BITS


def unstamp(one: int) -> tuple[int, int]:
    """The step and the place of a stamp."""
    return one >> _PLACE_BITS, one & ((1 << _PLACE_BITS) - 1)


class Reads:
    """Of every agent that reads, by a key of its own: the stamp of its last read of each cell."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.latest: dict[int, int] = {}
        """Key → the stamp of its last read of any cell."""
        self._stamps: dict[int, Stamps] = {}
        """Key → the stamp of its last read of each cell, but for what is pending."""
        self._pending: dict[int, dict[int, tuple[Cells, int]]] = {}
        """Key → reads not yet noted in `_stamps`, by the id of their cells, which recur."""
        self._extent: dict[int, tuple[int, int]] = {}
        """Key → the lowest and the highest cell it ever read."""
        self._spare: list[Stamps] = []

    def clear(self) -> None:
        """Forget everything, for a new owner."""
        self._spare += self._stamps.values()
        self._stamps.clear()
        self._pending.clear()
        self._extent.clear()
        self.latest.clear()

    def note(self, cells: Cells, key: int, one: int) -> None:
        """Note a read. Most are never asked for, so it is only remembered until one is."""
        pending = self._pending.setdefault(key, {})
        if id(cells) not in pending:
            low, high = self._extent.get(key, (self.cells, 0))
            self._extent[key] = min(low, int(cells.min())), max(high, int(cells.max()))
        pending[id(cells)] = (cells, one)
        self.latest[key] = one
        if len(pending) > _PENDING_KEPT:
            self._write_down(key)

    def may_have_read(self, key: int, low: int, high: int) -> bool:
        """Whether somebody read anything in a range of cells, by a quick test."""
        first, last = self._extent[key]
        return first <= high and low <= last

    def of(self, key: int, cells: Cells) -> Stamps:
        """The stamp of the last read of each cell."""
        return self._write_down(key)[cells]

    def _write_down(self, key: int) -> Stamps:
        stamps = self._stamps.get(key)
        if stamps is None:
            stamps = self._spare.pop() if self._spare else np.empty(self.cells, np.int64)
            stamps.fill(0)
            self._stamps[key] = stamps
        for cells, one in sorted(self._pending.pop(key, {}).values(), key=lambda each: each[1]):
            stamps[cells] = one
        return stamps
