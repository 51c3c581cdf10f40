"""Who wrote each cell of a memory last, lane by lane; and who reached it by an atomic operation.

Where lanes wrote, or updated, parts of a cell, its bytes have entries of their own.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.checks.reads import Cells
from kernelpack.emulator.checks.shadow import WHOLE_CELL, bytes_of, is_whole

_FIRST_CELLS = 1 << 16
SEVERAL = -1
"""In place of a lane: several lanes of one warp."""
_PARTED = -1
"""In place of a warp: of each byte there is an entry in `parts`."""
_COUNTS = np.array([byte.bit_count() for byte in range(16)])
Lanes = NDArray[np.intp]
Mask = int | NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Last:
    """The last writes, or atomic operations, that accesses of lanes meet: an entry each."""

    agent: NDArray[np.int32]
    """The warp's agent plus one; 0 for nobody's."""
    time: NDArray[np.int64]
    """A count of the check that asks."""
    lane: NDArray[np.int8]
    place: NDArray[np.int32]
    """The instruction, as findings number it."""
    by: Lanes
    """The lane that meets it."""


class _Columns:
    """An entry of `Last` for each cell."""

    def __init__(self, cells: int) -> None:
        self.agent = np.zeros(cells, np.int32)
        self.time = np.zeros(cells, np.int64)
        self.lane = np.zeros(cells, np.int8)
        self.place = np.zeros(cells, np.int32)

    def hold(self, size: int) -> None:
        """Grow to so many cells."""
        for name in ("agent", "time", "lane", "place"):
            old = getattr(self, name)
            new = np.zeros(size, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def of(self, cells: Cells, by: Lanes) -> Last:
        """The entries of cells."""
        return Last(self.agent[cells], self.time[cells], self.lane[cells], self.place[cells], by)

    def set(self, cells: Cells, agent: int, time: int, lanes: Lanes, place: int) -> None:
        """An entry for each cell."""
        self.agent[cells], self.time[cells], self.place[cells] = agent + 1, time, place
        self.lane[cells] = lanes

    def mix(self, cells: Cells, lanes: Lanes) -> None:
        """Where several lanes met in one cell, no lane is named."""
        self.lane[cells[self.lane[cells] != lanes]] = SEVERAL


class Entries:
    """Who did something last to each cell, or to each byte of it."""

    def __init__(self, cells: int) -> None:
        self.whole, self.parts = _Columns(cells), _Columns(0)

    def hold(self, size: int) -> None:
        """Grow to so many cells."""
        self.whole.hold(size)
        if len(self.parts.agent):
            self.parts.hold(4 * size)

    def of(self, cells: Cells, mask: Mask, by: Lanes) -> Last:
        """The conflicts of lanes' accesses."""
        parted = self.whole.agent[cells] == _PARTED
        if not np.count_nonzero(parted):
            return self.whole.of(cells, by)
        whole = self.whole.of(cells[~parted], by[~parted])
        touched, lanes = _bytes(cells[parted], _at(mask, parted), by[parted])
        part = self.parts.of(touched, lanes)
        both = ((getattr(whole, n), getattr(part, n)) for n in Last.__dataclass_fields__)
        return Last(*map(np.concatenate, both))

    def set(
        self,
        cells: Cells,
        mask: Mask,
        by: Lanes,
        who: tuple[int, int, int],
        *,
        mixed: bool = False,
    ) -> None:
        """Note what lanes do: `who` is their agent, the time, and the place.

        `mixed`: several lanes that meet in one cell differ from a single one.
        """
        agent, time, place = who
        columns = self.whole
        if not is_whole(mask):
            self._part(cells)
            cells, by = _bytes(cells, mask, by)
            columns = self.parts
        columns.set(cells, agent, time, by, place)
        if mixed:
            columns.mix(cells, by)

    def forget(self, cells: Cells) -> None:
        """Forget the accesses to these cells."""
        self.whole.agent[cells] = 0

    def _part(self, cells: Cells) -> None:
        """From now on the bytes of cells have entries of their own."""
        if not len(self.parts.agent):
            self.parts = _Columns(4 * len(self.whole.agent))
        fresh = cells[self.whole.agent[cells] != _PARTED]
        touched = bytes_of(fresh, WHOLE_CELL)
        for name in ("agent", "time", "lane", "place"):
            getattr(self.parts, name)[touched] = np.repeat(getattr(self.whole, name)[fresh], 4)
        self.whole.agent[fresh] = _PARTED


class LaneCells:
    """Lanes' accesses to each cell of one memory: writes, atomic operations; who reads for them.

    An operation appears by its number.
    """

    def __init__(self, cells: int) -> None:
        self.cells = cells
        size = min(cells, _FIRST_CELLS)
        self.writes, self.atomics = Entries(size), Entries(size)
        self.reader = np.zeros(size, np.int64)

    def hold(self, cells: Cells) -> None:
        """Grow where a cell is beyond what is held."""
        last = int(cells.max())
        if last < len(self.reader):
            return
        size = max(last + 1, min(2 * len(self.reader), self.cells))
        self.writes.hold(size)
        self.atomics.hold(size)
        new = np.zeros(size, np.int64)
        new[: len(self.reader)] = self.reader
        self.reader = new


def _bytes(cells: Cells, mask: Mask, by: Lanes) -> tuple[Cells, Lanes]:
    """The bytes of accesses, and the lane of each."""
    touched = bytes_of(cells, mask)
    counts = _COUNTS[np.broadcast_to(np.asarray(mask) & WHOLE_CELL, len(cells))]
    return touched, np.repeat(by, counts)


def _at(mask: Mask, chosen: NDArray[np.bool_]) -> Mask:
    return mask if isinstance(mask, int) else mask[chosen]
