"""The common parts of asynchronous copies.

Bytes that a unit moves and reports, and the groups by which a warp waits for them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.events import Access, Acquire, Release
from kernelpack.emulator.machine.cluster import Cta
from kernelpack.emulator.machine.engine import Operation
from kernelpack.emulator.machine.lanes import EVERY, Mask
from kernelpack.emulator.machine.memory import Bytes, Memory, cells_of
from kernelpack.emulator.machine.warp import Warp

Offsets = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Doer:
    """Who moves bytes: the agent, the warp that asked for it, and what it is called."""

    agent: int
    warp: Warp
    what: str
    proxy: str = "async"


@dataclass(frozen=True, slots=True, eq=False)
class Bytewise:
    """Bytes of one memory: an offset each; their cells, where these are known already."""

    memory: Memory
    offsets: Offsets
    known: tuple[Offsets, bool] | None = None

    def at(self, places: Offsets) -> "Bytewise":
        """Some of them."""
        return Bytewise(self.memory, self.offsets[places])

    def read(self, doer: Doer) -> Bytes:
        """Their values."""
        cells, whole = self.known or cells_of(self.offsets)
        self._tell(cells, doer, write=False)
        found = self.memory.gather_cells(cells) if whole else None
        if found is None:
            return self.memory.gather(self.offsets)
        return found.reshape(self.offsets.shape)

    def write(self, values: Bytes, doer: Doer) -> None:
        """Change them."""
        cells, whole = self.known or cells_of(self.offsets)
        self._tell(cells, doer, write=True)
        if not (whole and self.memory.scatter_cells(cells, np.ascontiguousarray(values))):
            self.memory.scatter(self.offsets, values)
        doer.warp.cta.machine.changes += 1

    def _tell(self, cells: Offsets, doer: Doer, *, write: bool) -> None:
        memory, bus = self.memory, doer.warp.cta.machine.bus
        if not bus.wants(Access) or not cells.size:
            return
        if int(cells.min()) < 0 or int(cells.max()) >= memory.unit.cells:
            cells = cells[(cells >= 0) & (cells < memory.unit.cells)]
            if not cells.size:
                return
        bus.emit(Access(memory.unit, cells, doer.agent, write, doer.proxy, what=doer.what))


def shared_range(cta: Cta, offset: int, size: int) -> Bytewise:
    """`size` bytes of a CTA's shared memory."""
    return Bytewise(cta.shared, np.arange(offset, offset + size))


def global_range(warp: Warp, address: int, size: int) -> Bytewise:
    """`size` bytes of global memory."""
    memory = warp.cta.machine.memory
    return Bytewise(memory, np.arange(address - memory.base, address - memory.base + size))


@dataclass(slots=True)
class Groups:
    """The operations a warp committed in groups, oldest first.

    A group is its threads' own: those lanes that committed it wait for it, no others. Each kind of
    operation has groups of its own, and a class for them.
    """

    open: list[Operation] = field(default_factory=list)
    committed: list[list[Operation]] = field(default_factory=list)
    lanes: list[Mask] = field(default_factory=list)
    """Who committed each group."""

    def commit(self, lanes: Mask = EVERY) -> None:
        """Close the open group."""
        self.committed.append(self.open)
        self.lanes.append(lanes)
        self.open = []

    def finish(self, warp: Warp, keep: int, lanes: Mask = EVERY) -> None:
        """Wait until at most `keep` of the newest groups of some lanes are unfinished."""
        engine = warp.cta.machine.engine
        mine = [n for n, owners in enumerate(self.lanes) if (owners & lanes).any()]
        over = mine[: max(len(mine) - keep, 0)]
        for number in over:
            waiting = self.lanes[number] & lanes
            for operation in self.committed[number]:
                engine.finish(operation)
                done = Acquire(warp.agent, ("operation", operation.number), waiting)
                warp.cta.machine.bus.emit(done)
        for number in reversed(over):
            del self.committed[number], self.lanes[number]


def groups(warp: Warp, kind: type[Groups]) -> Groups:
    """The groups of one kind of a warp."""
    return warp.units.of(kind)


def told_done(warp: Warp, agent: int, number: int) -> None:
    """An operation is over: its past goes to those who wait for it by group."""
    warp.cta.machine.bus.emit(Release(agent, ("operation", number)))


def in_group(kind: type[Groups], label: str, doer: Doer, effect: Callable[[], None]) -> None:
    """Issue an operation into the warp's open group."""
    warp = doer.warp
    engine = warp.cta.machine.engine
    number = engine.count + 1

    def whole() -> None:
        effect()
        told_done(warp, doer.agent, number)

    operation = engine.issue(label, warp, doer.agent, whole, ordered=False)
    groups(warp, kind).open.append(operation)


def alone(label: str, doer: Doer, effect: Callable[[], None]) -> None:
    """Issue an operation that is ordered with nothing."""
    doer.warp.cta.machine.engine.issue(label, doer.warp, doer.agent, effect, ordered=False)
