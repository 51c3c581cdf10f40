"""Accesses that nothing orders: races, missing proxy fences, operands that change in flight.

Two agents, one cell, at least one write, and neither knows of the other's access: a race
(PTX ISA 8.10). A generic write that an asynchronous read follows needs a proxy fence between
the two, on some path of happens-before (8.4, 9.7.13.5). And an operation in flight reads its
operands when it takes effect: nobody else may have written them since it was issued.

Agents are warps and units, so lanes of one warp are not held against each other. Reads of global
memory are not noted: a write there races only with writes, and a read with an earlier write.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.checks.clocks import Clocks
from kernelpack.emulator.checks.shadow import ATOMIC, GENERIC, NOBODY, Shadow, Write
from kernelpack.emulator.events import Access, Began, Bus, Ended, Exited, Issued, Unit
from kernelpack.emulator.faults import Level, Rule

RACE = Rule(name="race", level=Level.ERROR, section="8.10")
PROXY = Rule(name="proxy-fence", level=Level.ERROR, section="9.7.13.5")
CHANGED = Rule(name="operand-changed", level=Level.ERROR, section="9.7.16.6")


class Races:
    """Holds every access against what happened to its cells before."""

    def __init__(self, report: Callable[..., None]) -> None:
        self.report = report
        self.clocks = Clocks()
        self.shadows: dict[Unit, Shadow] = {}
        self.unused: dict[int, list[Shadow]] = {}
        self.serial = 0
        self.issued_at: dict[int, int] = {}
        self.running: list[int] = []

    def listen(self, bus: Bus) -> None:
        """Hear of accesses and of all that orders them."""
        self.clocks.listen(bus)
        bus.listen(Issued, self.on_issue)
        bus.listen(Began, self.on_begin)
        bus.listen(Ended, self.on_end)
        bus.listen(Access, self.on_access)
        bus.listen(Exited, self.on_exit)

    def on_issue(self, event: Issued) -> None:
        """Remember when."""
        self.issued_at[event.operation] = self.serial

    def on_begin(self, event: Began) -> None:
        """Accesses from now on are this operation's."""
        self.running.append(event.operation)

    def on_end(self, event: Ended) -> None:
        """No longer."""
        self.running.pop()
        del self.issued_at[event.operation]

    def on_exit(self, event: Exited) -> None:
        """Nobody will access these memories any more: their shadows serve others."""
        for unit in event.units:
            shadow = self.shadows.pop(unit, None)
            if shadow is not None:
                self.unused.setdefault(unit.cells, []).append(shadow)

    def _shadow(self, unit: Unit) -> Shadow:
        """The shadow of a unit, made or taken over on its first access."""
        spare = self.unused.get(unit.cells)
        shadow = spare.pop() if spare else Shadow(unit.cells)
        shadow.clear()
        self.shadows[unit] = shadow
        return shadow

    def on_access(self, event: Access) -> None:
        """Compare, then note."""
        shadow = self.shadows.get(event.unit)
        if shadow is None:
            shadow = self._shadow(event.unit)
        writers = shadow.writers(event.cells)
        if (writers != NOBODY).any():
            self._after_writes(shadow, event, writers)
        step = self.clocks.step(event.agent)
        if event.write:
            self._after_reads(shadow, event)
            self.serial += 1
            how = (GENERIC if event.proxy == "generic" else 0) | (ATOMIC if event.atomic else 0)
            write = Write(event.agent, step, how, self.serial)
            shadow.wrote(event.cells, event.bytes_mask, write)
        elif event.unit.kind != "global":
            shadow.read(event.cells, event.agent, step)

    def _after_writes(self, shadow: Shadow, event: Access, writers: NDArray[np.int32]) -> None:
        if self._plainly_known(shadow, event, writers):
            return
        others = (writers != NOBODY) & (writers != event.agent + 1)
        if not others.any():
            return
        writers = writers - 1
        cells, steps = event.cells, shadow.step[event.cells]
        overlap = others & ((shadow.bytes[cells] & event.bytes_mask) != 0)
        known = self.clocks.at(self.clocks.known[event.agent], writers)
        race = overlap & (steps > known)
        how = shadow.how[cells]
        if event.atomic:
            race &= (how & ATOMIC) == 0
        if race.any():
            self._report_race(event, int(writers[int(np.argmax(race))]), "wrote", race)
            return
        if event.proxy == "async" and not event.write:
            self._check_proxy(event, writers, steps, overlap & ((how & GENERIC) != 0))
        if self.running and not event.write:
            self._check_changed(shadow, event, others)

    def _plainly_known(self, shadow: Shadow, event: Access, writers: NDArray[np.int32]) -> bool:
        """Whether one agent wrote all the cells, not by the generic proxy, and all is well.

        That is what an operand brought by one copy looks like: the common case, decided quickly.
        """
        first = writers[:1]
        if (writers != first).any():
            return False
        if int(first[0]) == event.agent + 1:
            return True
        known = self.clocks.at(self.clocks.known[event.agent], first - 1)
        if int(shadow.step[event.cells].max()) > int(known[0]):
            return False
        if event.write:
            return True
        if event.proxy == "async" and (shadow.how[event.cells] & GENERIC).any():
            return False
        issued = self.issued_at[self.running[-1]] if self.running else self.serial
        return shadow.latest_write <= issued

    def _check_proxy(
        self,
        event: Access,
        writers: NDArray[np.int32],
        steps: NDArray[np.int64],
        generic: NDArray[np.bool_],
    ) -> None:
        fence = self.clocks.fenced[event.agent].get(event.unit.kind)
        bare = generic if fence is None else generic & (steps > self.clocks.at(fence, writers))
        if bare.any():
            writer = self.clocks.names[int(writers[int(np.argmax(bare))])]
            self.report(
                PROXY,
                f"{event.what} reads {event.unit.name}, written by {writer} through the generic "
                "proxy, with no fence.proxy.async in between",
            )

    def _check_changed(self, shadow: Shadow, event: Access, others: NDArray[np.bool_]) -> None:
        issued = self.issued_at[self.running[-1]]
        changed = others & (shadow.serial[event.cells] > issued)
        if changed.any():
            cell = int(event.cells[int(np.argmax(changed))])
            writer = self.clocks.names[int(shadow.writer[cell]) - 1]
            self.report(
                CHANGED,
                f"{event.what} reads {_place(event.unit, cell)}, which {writer} wrote between "
                "issue and execution",
            )

    def _after_reads(self, shadow: Shadow, event: Access) -> None:
        clock = self.clocks.known[event.agent]
        for reader, latest in shadow.latest_read.items():
            if reader == event.agent:
                continue
            slot = int(self.clocks.slots[reader])
            known = int(clock[slot]) if 0 <= slot < len(clock) else 0
            if latest <= known:
                continue
            unknown = shadow.reads[reader][event.cells] > known
            if unknown.any():
                self._report_race(event, reader, "read", unknown)
                return

    def _report_race(self, event: Access, other: int, did: str, where: NDArray[np.bool_]) -> None:
        cell = int(event.cells[int(np.argmax(where))])
        doing = "writes" if event.write else "reads"
        what = event.what or self.clocks.names[event.agent]
        self.report(
            RACE,
            f"{what} {doing} {_place(event.unit, cell)}, which {self.clocks.names[other]} {did} "
            "with nothing that orders the two",
        )


def _place(unit: Unit, cell: int) -> str:
    """A cell in words."""
    if unit.kind == "tensor":
        return f"{unit.name} lanes {cell // 512 * 16}+ column {cell % 512}"
    return f"{unit.name} at {hex(4 * cell)}"
