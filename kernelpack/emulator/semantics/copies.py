"""What asynchronous copies have in common: bytes moved by a unit, told to the checks, and the
groups by which a warp waits for them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.events import Access, Acquire, Release
from kernelpack.emulator.machine.engine import Operation
from kernelpack.emulator.machine.memory import Bytes, Memory
from kernelpack.emulator.machine.warp import Warp

Offsets = NDArray[np.intp]


def read(memory: Memory, offsets: Offsets, agent: int, warp: Warp, what: str) -> Bytes:
    """Bytes that a unit reads."""
    _tell(memory, offsets, agent, warp, what, write=False)
    return memory.gather(offsets)


def write(
    memory: Memory, offsets: Offsets, values: Bytes, agent: int, warp: Warp, what: str
) -> None:
    """Bytes that a unit writes."""
    memory.kernel_wrote = True
    _tell(memory, offsets, agent, warp, what, write=True)
    memory.scatter(offsets, values)
    warp.cta.machine.changes += 1


def _tell(
    memory: Memory, offsets: Offsets, agent: int, warp: Warp, what: str, *, write: bool
) -> None:
    bus = warp.cta.machine.bus
    quiet = memory.unit.kind == "global" and not memory.kernel_wrote
    if quiet or not bus.wants(Access) or not offsets.size:
        return
    cells = cells_of(offsets)
    inside = (cells >= 0) & (cells < memory.unit.cells)
    if not inside.all():
        cells = cells[inside]
    bus.emit(Access(memory.unit, cells, agent, write, "async", what=what))


def cells_of(offsets: Offsets) -> Offsets:
    """The 4-byte cells of byte offsets that come in whole, aligned words, each cell once."""
    flat = offsets.reshape(-1)
    if flat.size % 4 == 0 and (flat[::4] % 4 == 0).all() and (flat[3::4] == flat[::4] + 3).all():
        return flat[::4] >> 2
    return np.unique(flat >> 2)


@dataclass(slots=True)
class Groups:
    """The copies a warp committed in groups (`cp.async`, `cp.async.bulk`), oldest first."""

    name: str
    open: list[Operation] = field(default_factory=list)
    committed: list[list[Operation]] = field(default_factory=list)
    done: int = 0
    """Groups that were waited for."""

    def commit(self) -> None:
        """Close the open group."""
        self.committed.append(self.open)
        self.open = []

    def finish(self, warp: Warp, keep: int) -> None:
        """Wait until at most `keep` of the newest groups are unfinished."""
        engine = warp.cta.machine.engine
        while len(self.committed) > keep:
            for operation in self.committed.pop(0):
                engine.finish(operation)
                warp.cta.machine.bus.emit(Acquire(warp.agent, ("operation", operation.number)))
            self.done += 1


def groups(warp: Warp, name: str) -> Groups:
    """The groups of one kind of a warp."""
    found: Groups = warp.units.setdefault(name, Groups(name))
    return found


def told_done(warp: Warp, agent: int, number: int) -> None:
    """An operation is over: its past goes to those who wait for it by group."""
    warp.cta.machine.bus.emit(Release(agent, ("operation", number)))


def in_group(
    warp: Warp, name: str, label: str, agent: int, effect: Callable[[], None]
) -> Operation:
    """Issue an operation into the warp's open group."""
    engine = warp.cta.machine.engine
    number = engine.count + 1

    def whole() -> None:
        effect()
        told_done(warp, agent, number)

    operation = engine.issue(label, warp, agent, whole, ordered=False)
    groups(warp, name).open.append(operation)
    return operation
