"""Accesses that nothing orders: races, missing proxy fences, operands that change in flight.

Two agents, one cell, at least one write, and neither knows of the other's access: a race
(PTX ISA 8.10). A generic write that an asynchronous read follows needs a proxy fence between
the two, on some path of happens-before (8.4, 9.7.13.4). And an operation in flight reads its
operands when it takes effect: nobody else may have written them since it was issued.

Agents are warps and units, so lanes of one warp are not compared with each other. Of the readers of
global memory the last two are known, of shared memory all.
"""

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.checks import Reporter
from kernelpack.emulator.checks.clocks import CAUSAL, EXECUTED, SCOPED, Clocks
from kernelpack.emulator.checks.race_findings import Found, Other
from kernelpack.emulator.checks.readers import Readers
from kernelpack.emulator.checks.reads import Cells, Reads, after, stamp, unstamp
from kernelpack.emulator.checks.shadow import (
    ATOMIC,
    GENERIC,
    MBARRIER,
    NOBODY,
    PARTIAL,
    Accesses,
    Numbers,
    Shadow,
    bytes_of,
    distinct,
    is_whole,
)
from kernelpack.emulator.events import Access, Began, Bus, Ended, Exited, Issued, Unit

_MEMORIES = ("shared", "global")
"""Kinds of units whose accesses the memory model orders; others are ordered by execution."""
_FEW = 4
"""So many writes are looked at one by one."""


class Races:
    """Checks every access against what happened to its cells before."""

    def __init__(self, report: Reporter, clocks: Clocks) -> None:
        self.report, self.found, self.clocks = report, Found(report, clocks), clocks
        self.shadows: dict[Unit, Shadow] = {}
        self.unused: dict[int, list[Shadow]] = {}
        self.writes = Accesses()
        self.reads = Accesses()
        self.readers = Readers(self.reads)
        self.byte_readers = Readers(self.reads)
        """The same of reads of parts of cells, by byte."""
        self.did: dict[int, str] = {}
        """The number of a write that a word of its own publishes → that word."""
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
        cells, numbers = event.cells, shadow.last_writes(event.cells)
        last = distinct(numbers)
        how = _any_of(self.writes.how, last)
        if how & MBARRIER and not event.mbarrier:
            self.found.mbarrier(event, int(event.cells[self._are_mbarriers(numbers).argmax()]))
        if how & PARTIAL:
            cells, numbers = shadow.by_byte(cells, event.bytes_mask, self.writes)
        if how & PARTIAL or not self._are_known(event, last):
            self._after_writes(cells, event, numbers)
        step, is_global = self.clocks.step(event.agent), event.unit.kind == "global"
        if event.write:
            if is_global:
                self._after_global_reads(event)
            else:
                self._after_shared_reads(shadow, event)
            self._note_write(shadow, event, step)
        elif is_global:
            self._note_global_read(event, step)
        else:
            key = ~event.agent if event.atomic else event.agent
            shadow.read(event.cells, event.bytes_mask, key, stamp(step, self.report.at))

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
        is_part = not is_whole(event.bytes_mask)
        how |= PARTIAL if is_part else 0
        number = self.writes.add(event.agent, step, how, self.report.at)
        if is_part:
            shadow.wrote_part(event.cells, event.bytes_mask, number, self.writes)
        else:
            shadow.wrote(event.cells, number)

    def _are_known(self, event: Access, last: list[int]) -> bool:
        """Whether all is well with the cells that these writes wrote last."""
        if len(last) <= _FEW:
            return all(self._is_known(event, number) for number in last)
        numbers = np.array(last)
        agents, steps = self.writes.agents[numbers], self.writes.steps[numbers]
        row = _row(event) if event.write else _row_of_scopes(event)
        bad = steps > self.clocks.at(self.clocks.known[event.agent][row], agents)
        if not event.write and event.proxy == "async":
            generic = (self.writes.how[numbers] & GENERIC) != 0
            fence = self.clocks.fenced[event.agent].get(event.unit.kind)
            bad |= (
                generic if fence is None else generic & (steps > self.clocks.at(fence[0], agents))
            )
        if not event.write and self.running:
            bad |= numbers > self.issued_at[self.running[-1]]
        return not np.count_nonzero(bad & (numbers != NOBODY) & (agents != event.agent))

    def _is_known(self, event: Access, last: int) -> bool:
        """Whether all is well with the cells that this write wrote last.

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
            fenced = self.clocks.fenced_step(event.agent, agent, event.unit.kind)
            if self.writes.steps[last] > fenced:
                return False
        return not self.running or last <= self.issued_at[self.running[-1]]

    def _after_writes(self, cells: Cells, event: Access, numbers: Numbers) -> None:
        """Check an access against the last write of each of these cells, or bytes of them."""
        agents = self.writes.agents[numbers]
        others = (numbers != NOBODY) & (agents != event.agent)
        if not np.count_nonzero(others):
            return
        steps, how = self.writes.steps[numbers], self.writes.how[numbers]
        known = self.clocks.known[event.agent]
        race = others & (steps > self.clocks.at(known[_row(event)], agents))
        if event.atomic:
            race &= (how & ATOMIC) == 0
        if np.count_nonzero(race):
            at = int(race.argmax())
            mixed = not event.write and bool(how[at] & ATOMIC)
            self.found.race(event, self._write(int(numbers[at])), int(cells[at]), mixed=mixed)
            return
        if not (event.write or event.atomic):
            unseen = steps > self.clocks.at(known[_row_of_scopes(event)], agents)
            unseen &= others & ((how & GENERIC) != 0)
            if np.count_nonzero(unseen):
                at = int(unseen.argmax())
                self.found.order(event, self._write(int(numbers[at])), int(cells[at]))
        if event.proxy == "async" and not event.write:
            self._check_proxy(event, numbers, others & ((how & GENERIC) != 0))
        if self.running and not event.write:
            self._check_changed(cells, event, numbers, others)

    def _write(self, number: int) -> Other:
        """The write of a number."""
        did = self.did.get(number, "wrote")
        return _other(self.writes, number, did)

    def _check_proxy(self, event: Access, numbers: Numbers, generic: NDArray[np.bool_]) -> None:
        agents, steps = self.writes.agents[numbers], self.writes.steps[numbers]
        fence = self.clocks.fenced[event.agent].get(event.unit.kind)
        bare = generic if fence is None else generic & (steps > self.clocks.at(fence[0], agents))
        if np.count_nonzero(bare):
            self.found.proxy(event, self._write(int(numbers[bare.argmax()])))

    def _check_changed(
        self, cells: Cells, event: Access, numbers: Numbers, others: NDArray[np.bool_]
    ) -> None:
        changed = others & (numbers > self.issued_at[self.running[-1]])
        if np.count_nonzero(changed):
            at = int(changed.argmax())
            self.found.changed(event, self._write(int(numbers[at])), int(cells[at]))

    def _after_shared_reads(self, shadow: Shadow, event: Access) -> None:
        """Check a write against the last reads of its cells, whole ones and parts."""
        if self._after_reads(shadow.reads, event, event.cells):
            return
        if shadow.byte_reads is not None:
            touched = bytes_of(event.cells, event.bytes_mask)
            self._after_reads(shadow.byte_reads, event, touched, each=4)

    def _after_reads(self, reads: Reads, event: Access, cells: Cells, each: int = 1) -> bool:
        """Whether one races; `each` of these cells are one of the memory's."""
        low, high, row = int(cells.min()), int(cells.max()), _row(event)
        for key, latest in reads.latest.items():
            reader = _reader(key)
            if reader == event.agent or (event.atomic and key < 0):
                continue
            if not reads.may_have_read(key, low, high):
                continue
            unknown = after(self.clocks.known_step(event.agent, reader, row))
            if latest < unknown:
                continue
            stamps = reads.of(key, cells)
            late = stamps >= unknown
            if np.count_nonzero(late):
                at = int(late.argmax())
                other = Other(reader, *unstamp(int(stamps[at])), "read")
                self.found.race(event, other, int(cells[at]) // each, mixed=event.atomic)
                return True
        return False

    def _note_global_read(self, event: Access, step: int) -> None:
        how = ATOMIC if event.atomic else 0
        number = self.reads.same(event.agent, step, how, self.report.at)
        if is_whole(event.bytes_mask):
            self.readers.note(event.cells, number)
        else:
            self.byte_readers.note(bytes_of(event.cells, event.bytes_mask), number)

    def _after_global_reads(self, event: Access) -> None:
        """Check a write against the last reads of its cells, whole ones and parts."""
        if self._after_readers(event, self.readers, event.cells):
            return
        if self.byte_readers.is_used:
            touched = bytes_of(event.cells, event.bytes_mask)
            self._after_readers(event, self.byte_readers, touched, each=4)

    def _after_readers(self, event: Access, readers: Readers, cells: Cells, each: int = 1) -> bool:
        """Whether one races; `each` of these cells are one of the memory's."""
        for numbers in readers.of(cells):
            agents = self.reads.agents[numbers]
            others = (numbers != NOBODY) & (agents != event.agent)
            if not np.count_nonzero(others):
                continue
            steps, how = self.reads.steps[numbers], self.reads.how[numbers]
            known = self.clocks.at(self.clocks.known[event.agent][CAUSAL], agents)
            unknown = others & (steps > known)
            if event.atomic:
                unknown &= (how & ATOMIC) == 0
            if np.count_nonzero(unknown):
                at = int(unknown.argmax())
                mixed = event.atomic or bool(how[at] & ATOMIC)
                other = _other(self.reads, int(numbers[at]), "read")
                self.found.overwritten(event, other, int(cells[at]) // each, mixed=mixed)
                return True
        return False


def _any_of(how: NDArray[np.uint8], numbers: list[int]) -> int:
    """How any of these writes was made."""
    if len(numbers) == 1:
        return int(how[numbers[0]])
    return int(np.bitwise_or.reduce(how[numbers]))


def _other(accesses: Accesses, number: int, did: str) -> Other:
    agent, step, place = accesses.agents[number], accesses.steps[number], accesses.places[number]
    return Other(int(agent), int(step), int(place), did)


def _reader(key: int) -> int:
    """The agent of a key in a shadow; the complement for reads that synchronise."""
    return ~key if key < 0 else key


def _row(event: Access) -> int:
    """By which row of the clocks an access must come after others."""
    return CAUSAL if event.unit.kind in _MEMORIES else EXECUTED


def _row_of_scopes(event: Access) -> int:
    """The same, where scopes count too."""
    return SCOPED if event.unit.kind in _MEMORIES else EXECUTED
