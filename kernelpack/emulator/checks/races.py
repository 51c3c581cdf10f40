"""Accesses that nothing orders: races, missing proxy fences, operands that change in flight.

Two agents, one cell, at least one write, and neither knows of the other's access: a race
(PTX ISA 8.10). A generic write that an asynchronous read follows needs a proxy fence between
the two, on some path of happens-before (8.4, 9.7.13.5). And an operation in flight reads its
operands when it takes effect: nobody else may have written them since it was issued.

Agents are warps and units, so lanes of one warp are not held against each other. Of the readers of
global memory the last two are known, of shared memory all.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.checks.clocks import CAUSAL, EXECUTED, SCOPED, Clocks
from kernelpack.emulator.checks.race_findings import Found
from kernelpack.emulator.checks.readers import Readers
from kernelpack.emulator.checks.shadow import (
    ATOMIC,
    GENERIC,
    MBARRIER,
    NOBODY,
    PARTIAL,
    Accesses,
    Numbers,
    Shadow,
    distinct,
)
from kernelpack.emulator.events import Access, Began, Bus, Ended, Exited, Issued, Unit

_MEMORIES = ("shared", "global")
"""Kinds of units whose accesses the memory model orders; others are ordered by execution."""
WHOLE_CELL = 15
"""All four bytes of a cell."""


class Races:
    """Holds every access against what happened to its cells before."""

    def __init__(self, report: Callable[..., None], clocks: Clocks) -> None:
        self.found, self.clocks = Found(report, clocks), clocks
        self.shadows: dict[Unit, Shadow] = {}
        self.unused: dict[int, list[Shadow]] = {}
        self.writes = Accesses()
        self.reads = Accesses()
        self.readers = Readers(self.reads)
        self.did: dict[int, str] = {}
        """The number of a write that is told of by a word of its own → that."""
        self.issued_at: dict[int, int] = {}
        self.running: list[int] = []

    def listen(self, bus: Bus) -> None:
        """Hear of accesses, after the clocks have heard of all that orders them."""
        bus.listen(Issued, self.on_issue)
        bus.listen(Began, self.on_begin)
        bus.listen(Ended, self.on_end)
        bus.listen(Access, self.on_access)
        bus.listen(Exited, self.on_exit)

    def on_issue(self, event: Issued) -> None:
        """Remember when."""
        self.issued_at[event.operation] = self.writes.latest

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
        numbers = shadow.last_writes(event.cells)
        last = distinct(numbers)
        if not event.mbarrier and any(self.writes.how[number] & MBARRIER for number in last):
            self.found.mbarrier(event, int(event.cells[self._are_mbarriers(numbers).argmax()]))
        if not all(self._is_known(event, number) for number in last):
            self._after_writes(shadow, event, numbers)
        step = self.clocks.step(event.agent)
        is_global = event.unit.kind == "global"
        if event.write:
            if is_global:
                self._after_global_reads(event)
            else:
                self._after_reads(shadow, event)
            self._note_write(shadow, event, step)
        elif is_global:
            self._note_global_read(event, step)
        else:
            shadow.read(event.cells, ~event.agent if event.atomic else event.agent, step)

    def _are_mbarriers(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Which cells hold a part of an mbarrier."""
        found: NDArray[np.bool_] = (self.writes.how[numbers] & MBARRIER) != 0
        return found

    def _note_write(self, shadow: Shadow, event: Access, step: int) -> None:
        if event.did:
            self.did[self.writes.latest + 1] = event.did
        how = (GENERIC if event.proxy == "generic" else 0) | (ATOMIC if event.atomic else 0)
        if event.mbarrier == "init":
            how |= MBARRIER
        if isinstance(event.bytes_mask, int) and event.bytes_mask == WHOLE_CELL:
            shadow.wrote(event.cells, self.writes.add(event.agent, step, how))
        else:
            number = self.writes.add(event.agent, step, how | PARTIAL)
            shadow.wrote_part(event.cells, event.bytes_mask, number, self.writes)

    def _is_known(self, event: Access, last: int) -> bool:
        """Whether all is well with the cells of which this write was the last.

        An operand brought by a copy is decided so, by numbers alone; where it says no,
        `_after_writes` looks at each cell.
        """
        agent = int(self.writes.agents[last])
        if last == NOBODY or agent == event.agent:
            return True
        row = _row(event) if event.write else _row_of_scopes(event)
        if self.writes.steps[last] > self.clocks.known_step(event.agent, agent, row):
            return False
        if event.write:
            return True
        if event.proxy == "async" and self.writes.how[last] & GENERIC:
            return False
        return not self.running or last <= self.issued_at[self.running[-1]]

    def _after_writes(self, shadow: Shadow, event: Access, numbers: Numbers) -> None:
        cells, agents = event.cells, self.writes.agents[numbers]
        others = (numbers != NOBODY) & (agents != event.agent)
        if not np.count_nonzero(others):
            return
        steps, how = self.writes.steps[numbers], self.writes.how[numbers]
        overlap = others & ((shadow.touched(cells, how) & event.bytes_mask) != 0)
        known = self.clocks.known[event.agent]
        race = overlap & (steps > self.clocks.at(known[_row(event)], agents))
        if event.atomic:
            race &= (how & ATOMIC) == 0
        if np.count_nonzero(race):
            at = int(race.argmax())
            mixed = not event.write and bool(how[at] & ATOMIC)
            did = self.did.get(int(numbers[at]), "wrote")
            self.found.race(
                event, int(agents[at]), int(steps[at]), did, int(event.cells[at]), mixed=mixed
            )
            return
        if not (event.write or event.atomic):
            unseen = steps > self.clocks.at(known[_row_of_scopes(event)], agents)
            unseen &= overlap & ((how & GENERIC) != 0)
            if np.count_nonzero(unseen):
                at = int(unseen.argmax())
                self.found.order(event, int(agents[at]), int(steps[at]), int(event.cells[at]))
        if event.proxy == "async" and not event.write:
            self._check_proxy(event, agents, steps, overlap & ((how & GENERIC) != 0))
        if self.running and not event.write:
            self._check_changed(event, numbers, others)

    def _check_proxy(
        self,
        event: Access,
        agents: NDArray[np.int32],
        steps: NDArray[np.int64],
        generic: NDArray[np.bool_],
    ) -> None:
        fence = self.clocks.fenced[event.agent].get(event.unit.kind)
        bare = generic if fence is None else generic & (steps > self.clocks.at(fence[0], agents))
        if np.count_nonzero(bare):
            self.found.proxy(event, int(agents[bare.argmax()]))

    def _check_changed(self, event: Access, numbers: Numbers, others: NDArray[np.bool_]) -> None:
        changed = others & (numbers > self.issued_at[self.running[-1]])
        if np.count_nonzero(changed):
            at = int(changed.argmax())
            writer = int(self.writes.agents[numbers[at]])
            self.found.changed(event, writer, int(event.cells[at]))

    def _after_reads(self, shadow: Shadow, event: Access) -> None:
        low, high, row = int(event.cells.min()), int(event.cells.max()), _row(event)
        for key, latest in shadow.latest_read.items():
            reader = _reader(key)
            if reader == event.agent or (event.atomic and key < 0):
                continue
            if not shadow.may_have_read(key, low, high):
                continue
            known = self.clocks.known_step(event.agent, reader, row)
            if latest <= known:
                continue
            steps = shadow.reads(key, event.cells)
            unknown = steps > known
            if np.count_nonzero(unknown):
                at = int(unknown.argmax())
                self.found.race(
                    event, reader, int(steps[at]), "read", int(event.cells[at]), mixed=event.atomic
                )
                return

    def _note_global_read(self, event: Access, step: int) -> None:
        whole = isinstance(event.bytes_mask, int) and event.bytes_mask == WHOLE_CELL
        how = (ATOMIC if event.atomic else 0) | (0 if whole else PARTIAL)
        number = self.reads.same(event.agent, step, how)
        self.readers.note(event.cells, event.bytes_mask, number)

    def _after_global_reads(self, event: Access) -> None:
        """Hold a write against the last reads of its cells."""
        for numbers, touched in self.readers.of(event.cells):
            agents = self.reads.agents[numbers]
            others = (numbers != NOBODY) & (agents != event.agent)
            if not np.count_nonzero(others):
                continue
            steps, how = self.reads.steps[numbers], self.reads.how[numbers]
            known = self.clocks.at(self.clocks.known[event.agent][CAUSAL], agents)
            unknown = others & (steps > known) & ((touched & event.bytes_mask) != 0)
            if event.atomic:
                unknown &= (how & ATOMIC) == 0
            if np.count_nonzero(unknown):
                at = int(unknown.argmax())
                mixed = event.atomic or bool(how[at] & ATOMIC)
                reader, cell = int(agents[at]), int(event.cells[at])
                self.found.overwritten(event, reader, int(steps[at]), cell, mixed=mixed)
                return


def _reader(key: int) -> int:
    """The agent of a key in a shadow; reads that synchronise stand apart, as their complement."""
    return ~key if key < 0 else key


def _row(event: Access) -> int:
    """By which row of the clocks an access must come after others."""
    return CAUSAL if event.unit.kind in _MEMORIES else EXECUTED


def _row_of_scopes(event: Access) -> int:
    """The same, where scopes count too."""
    return SCOPED if event.unit.kind in _MEMORIES else EXECUTED
