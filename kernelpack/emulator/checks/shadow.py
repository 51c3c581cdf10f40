"""The last accesses to each cell of a memory, and by whom.

A write has a number, its place in the order of all writes of a run. A memory keeps for each cell
the number of its last write, one array, and `Accesses` keeps what is known of each: an operand
that one copy brought has one number in all its cells, and is judged by looking at one write.
Bytes and halves of a cell may be different agents': the last write of each byte of such a cell
is in an array of its own, which a memory has from its first partial write on.
"""

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.checks.reads import Cells, Reads

NOBODY = 0
"""The number of no write."""
GENERIC, ATOMIC, PARTIAL, MBARRIER = 1, 2, 4, 8
"""How a write was made; a partial one did not write all bytes of all its cells, and one made an
mbarrier of them."""
WHOLE_CELL = 15
"""All four bytes of a cell."""
_FIRST_CELLS = 1 << 16
"""Cells a shadow starts with: all of a shared memory, the first part of a global one."""
_FIRST_WRITES = 1 << 10
_NEAR = 1 << 12
_BYTES = np.arange(4)
Numbers = NDArray[np.int32]


class Accesses:
    """Every write, or read, of a run by its number.

    Known are its agent (-1 for `NOBODY`), the agent's step, how it was made, and by which
    instruction: the index in the entry's body.
    """

    def __init__(self) -> None:
        self.latest = NOBODY
        self.agents = np.full(_FIRST_WRITES, -1, np.int32)
        self.steps = np.zeros(_FIRST_WRITES, np.int64)
        self.how = np.zeros(_FIRST_WRITES, np.uint8)
        self.places = np.zeros(_FIRST_WRITES, np.int32)

    def same(self, agent: int, step: int, how: int, place: int) -> int:
        """The number of one like this: the latest, if it is, else a new one."""
        at = self.latest
        latest = self.agents[at], self.steps[at], self.how[at], self.places[at]
        if latest == (agent, step, how, place):
            return at
        return self.add(agent, step, how, place)

    def add(self, agent: int, step: int, how: int, place: int) -> int:
        """A new one; its number."""
        self.latest += 1
        if self.latest == len(self.agents):
            for name in ("agents", "steps", "how", "places"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        self.agents[self.latest] = agent
        self.steps[self.latest] = step
        self.how[self.latest] = how
        self.places[self.latest] = place
        return self.latest


def distinct(numbers: Numbers) -> list[int]:
    """The different numbers among these, quickly where they are few or near each other."""
    first = int(numbers[0])
    if not np.count_nonzero(numbers != first):
        return [first]
    least = int(numbers.min())
    if int(numbers.max()) - least > _NEAR:
        return list(set(numbers.tolist()))
    return (np.flatnonzero(np.bincount(numbers - least)) + least).tolist()


def bytes_of(cells: Cells, mask: int | NDArray[np.uint8]) -> Cells:
    """The bytes, counted through a memory, that an access of parts of cells is about."""
    touched = (np.asarray(mask)[..., None] >> _BYTES) & 1
    found: Cells = (4 * cells[:, None] + _BYTES)[np.broadcast_to(touched != 0, (len(cells), 4))]
    return found


def is_whole(mask: int | NDArray[np.uint8]) -> bool:
    """Whether an access is about all bytes of each of its cells."""
    return isinstance(mask, int) and mask == WHOLE_CELL


class Shadow:
    """The last accesses to each cell of one memory."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.numbers: Numbers = np.zeros(min(cells, _FIRST_CELLS), np.int32)
        self.parts: Numbers | None = None
        """By byte, where the last write of its cell is a partial one; else without meaning."""
        self.reads = Reads(cells)
        self.byte_reads: Reads | None = None
        """Reads of parts of cells, by byte."""

    def clear(self) -> None:
        """Forget everything, for a new owner."""
        self.numbers.fill(NOBODY)
        self.parts = None
        self.reads.clear()
        self.byte_reads = None

    def last_writes(self, cells: Cells) -> Numbers:
        """The number of the last write to each cell; grows when a cell is beyond the shadow."""
        try:
            return self.numbers[cells]
        except IndexError:
            size = max(int(cells.max()) + 1, min(2 * len(self.numbers), self.cells))
            self.numbers = _grown(self.numbers, size)
            if self.parts is not None:
                self.parts = _grown(self.parts, 4 * size)
            return self.numbers[cells]

    def by_byte(
        self, cells: Cells, mask: int | NDArray[np.uint8], writes: Accesses
    ) -> tuple[Cells, Numbers]:
        """The last writes that an access meets, and their cells: one a byte where they differ."""
        assert self.parts is not None
        numbers = self.numbers[cells]
        is_part = (writes.how[numbers] & PARTIAL) != 0
        parted = bytes_of(cells[is_part], mask if isinstance(mask, int) else mask[is_part])
        found = np.concatenate([cells[~is_part], parted // 4])
        return found, np.concatenate([numbers[~is_part], self.parts[parted]])

    def wrote(self, cells: Cells, number: int) -> None:
        """Note a write of whole cells."""
        self.numbers[cells] = number

    def wrote_part(
        self, cells: Cells, mask: int | NDArray[np.uint8], number: int, writes: Accesses
    ) -> None:
        """Note a write of some bytes of cells; one that wrote all of them together is whole."""
        if self.parts is None:
            self.parts = np.zeros(4 * len(self.numbers), np.int32)
        before = self.numbers[cells]
        was_whole = (writes.how[before] & PARTIAL) == 0
        parted = 4 * cells[:, None] + _BYTES
        self.parts[parted[was_whole]] = before[was_whole, None]
        self.parts[bytes_of(cells, mask)] = number
        self.numbers[cells] = number
        if (self.parts[parted] == number).all():
            writes.how[number] &= ~np.uint8(PARTIAL)

    def read(self, cells: Cells, mask: int | NDArray[np.uint8], key: int, stamp: int) -> None:
        """Note a read of cells, or of parts of them."""
        if is_whole(mask):
            self.reads.note(cells, key, stamp)
            return
        if self.byte_reads is None:
            self.byte_reads = Reads(4 * self.cells)
        self.byte_reads.note(bytes_of(cells, mask), key, stamp)


def _grown(old: Numbers, size: int) -> Numbers:
    new = np.zeros(size, old.dtype)
    new[: len(old)] = old
    return new
