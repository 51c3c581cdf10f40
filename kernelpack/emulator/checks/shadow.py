"""What was last done to each cell of a memory, and by whom.

A write has a number, its place in the order of all writes of a run. A memory keeps for each cell
the number of its last write, one array, and `Accesses` keeps what is known of each: an operand
that one copy brought has one number in all its cells, and is judged by looking at one write.
"""

import numpy as np
from numpy.typing import NDArray

NOBODY = 0
"""The number of no write."""
GENERIC, ATOMIC, PARTIAL, MBARRIER = 1, 2, 4, 8
"""How a write was made; a partial one did not write all bytes of its cells, and one made an
mbarrier of them."""
_FIRST_CELLS = 1 << 16
"""Cells a shadow starts with: all of a shared memory, the first part of a global one."""
_FIRST_WRITES = 1 << 10
_PENDING_KEPT = 256
_NEAR = 1 << 12
Cells = NDArray[np.intp]
Numbers = NDArray[np.int32]


class Accesses:
    """Every write, or read, of a run by its number: the agent (-1 for `NOBODY`), its step, how."""

    def __init__(self) -> None:
        self.latest = NOBODY
        self.agents = np.full(_FIRST_WRITES, -1, np.int32)
        self.steps = np.zeros(_FIRST_WRITES, np.int64)
        self.how = np.zeros(_FIRST_WRITES, np.uint8)

    def same(self, agent: int, step: int, how: int) -> int:
        """The number of one like this: the latest, if it is, else a new one."""
        at = self.latest
        if self.agents[at] == agent and self.steps[at] == step and self.how[at] == how:
            return at
        return self.add(agent, step, how)

    def add(self, agent: int, step: int, how: int) -> int:
        """A new one; its number."""
        self.latest += 1
        if self.latest == len(self.agents):
            for name in ("agents", "steps", "how"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        self.agents[self.latest] = agent
        self.steps[self.latest] = step
        self.how[self.latest] = how
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


class Shadow:
    """The last accesses to each cell of one memory.

    `bytes` says which bytes a partial write wrote, and means nothing where the last write is whole.
    """

    def __init__(self, cells: int) -> None:
        self.cells = cells
        size = min(cells, _FIRST_CELLS)
        self.numbers: Numbers = np.zeros(size, np.int32)
        self.bytes = np.zeros(size, np.uint8)
        self.latest_read: dict[int, int] = {}
        """Agent → the step of its last read of any cell."""
        self._reads: dict[int, NDArray[np.int32]] = {}
        """Agent → the step of its last read of each cell, but for what is pending."""
        self._pending: dict[int, dict[int, tuple[Cells, int]]] = {}
        """Agent → reads not yet noted in `_reads`, by the id of their cells, which recur."""
        self._extent: dict[int, tuple[int, int]] = {}
        """Agent → the lowest and the highest cell it ever read."""
        self._spare: list[NDArray[np.int32]] = []

    def clear(self) -> None:
        """Forget everything, for a new owner."""
        self.numbers.fill(NOBODY)
        self._spare += self._reads.values()
        self._reads.clear()
        self._pending.clear()
        self._extent.clear()
        self.latest_read.clear()

    def last_writes(self, cells: Cells) -> Numbers:
        """The number of the last write to each cell; grows when a cell is beyond the shadow."""
        try:
            return self.numbers[cells]
        except IndexError:
            self._grow(int(cells.max()) + 1)
            return self.numbers[cells]

    def _grow(self, cells: int) -> None:
        size = max(cells, min(2 * len(self.numbers), self.cells))
        for name in ("numbers", "bytes"):
            old = getattr(self, name)
            new = np.zeros(size, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def touched(self, cells: Cells, how: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Which bytes of each cell its last write wrote, `how` being how that was made."""
        return np.where(how & PARTIAL, self.bytes[cells], np.uint8(15))

    def wrote(self, cells: Cells, number: int) -> None:
        """Note a write of whole cells."""
        self.numbers[cells] = number

    def wrote_part(
        self, cells: Cells, mask: int | NDArray[np.uint8], number: int, writes: Accesses
    ) -> None:
        """Note a write of some bytes. Bytes that the same agent wrote in its step stay noted."""
        before = self.numbers[cells]
        same = writes.agents[before] == writes.agents[number]
        same &= writes.steps[before] == writes.steps[number]
        kept = np.where(same, self.touched(cells, writes.how[before]), np.uint8(0))
        self.bytes[cells] = kept
        np.bitwise_or.at(self.bytes, cells, np.asarray(mask, np.uint8))
        self.numbers[cells] = number

    def read(self, cells: Cells, agent: int, step: int) -> None:
        """Note a read. Most are never asked for, so it is only remembered until one is."""
        pending = self._pending.setdefault(agent, {})
        if id(cells) not in pending:
            low, high = self._extent.get(agent, (self.cells, 0))
            self._extent[agent] = min(low, int(cells.min())), max(high, int(cells.max()))
        pending[id(cells)] = (cells, step)
        self.latest_read[agent] = step
        if len(pending) > _PENDING_KEPT:
            self._note(agent)

    def may_have_read(self, agent: int, low: int, high: int) -> bool:
        """Whether an agent read anything in a range of cells, as far as can be told quickly."""
        first, last = self._extent[agent]
        return first <= high and low <= last

    def reads(self, agent: int, cells: Cells) -> NDArray[np.int32]:
        """The step of an agent's last read of each cell."""
        return self._note(agent)[cells]

    def _note(self, agent: int) -> NDArray[np.int32]:
        steps = self._reads.get(agent)
        if steps is None:
            steps = self._spare.pop() if self._spare else np.empty(self.cells, np.int32)
            steps.fill(0)
            self._reads[agent] = steps
        for cells, step in sorted(self._pending.pop(agent, {}).values(), key=lambda one: one[1]):
            steps[cells] = step
        return steps
