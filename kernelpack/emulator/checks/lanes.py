"""Lanes of one warp that rely on running in step (PTX ISA 9.7.13.2, 9.7.12).

A lane may read what another lane of its warp wrote only after the two have met: at bar.warp.sync,
at a barrier, or at an mbarrier wait of all of them. The same holds for a plain access beside an
atomic operation of another lane; for another warp that reads what lanes wrote and that
synchronised with one lane (`handed`); for an operation of one lane that reads what others wrote;
for a proxy fence of one lane; and for a write to what an operation read that another lane waited
for. On today's machines converged lanes do run in step, hence `strict`.
"""

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator import rules
from kernelpack.emulator.checks import Reporter
from kernelpack.emulator.checks.handed import Handed, Known, unmet
from kernelpack.emulator.checks.lane_cells import SEVERAL, LaneCells, Lanes, Last
from kernelpack.emulator.checks.meetings import WIDTH, Meetings, Met
from kernelpack.emulator.events import (
    Access,
    Acquire,
    Began,
    Bus,
    Ended,
    Exited,
    Issued,
    LanesMet,
    ProxyFence,
    Release,
    Unit,
)
from kernelpack.emulator.faults import Level


class LaneRaces:
    """Checks accesses to shared and global memory against those of other lanes of the same warp."""

    level = Level.STRICT

    def __init__(self, report: Reporter) -> None:
        self.report = report
        self.now = 0
        self.meetings = Meetings()
        self.handed = Handed(self.meetings, self._tick)
        self.cells: dict[Unit, LaneCells] = {}
        self.issued: dict[int, tuple[int, Met, Known]] = {}
        self.running: list[int] = []
        self.waited: dict[int, tuple[int, NDArray[np.bool_]]] = {}
        """Operation → when some lanes of its warp waited for it, and which."""

    def listen(self, bus: Bus) -> None:
        """Hear of accesses, meetings, fences and operations."""
        bus.listen(Access, self.on_access)
        bus.listen(LanesMet, self.on_meeting)
        bus.listen(Release, self.handed.on_release)
        bus.listen(Acquire, self.on_acquire)
        bus.listen(ProxyFence, self.on_fence)
        bus.listen(Issued, self.on_issue)
        bus.listen(Began, lambda event: self.running.append(event.operation))
        bus.listen(Ended, self.on_end)
        bus.listen(Exited, self.on_exit)

    def _tick(self) -> int:
        self.now += 1
        return self.now

    def on_meeting(self, event: LanesMet) -> None:
        """Lanes of a warp have met."""
        self.meetings.meet(event.agent, event.lanes, self._tick())

    def on_acquire(self, event: Acquire) -> None:
        """All lanes have learned of others, and met but at a word; or some waited for a copy."""
        self.handed.on_acquire(event)
        if event.relaxed:
            return
        now = self._tick()
        if event.lanes is not None and not event.lanes.all():
            if isinstance(event.channel, tuple):
                self.waited[event.channel[1]] = now, event.lanes
        elif event.by is None or event.by.all():
            is_word = isinstance(event.channel, tuple) and event.channel[0] == "word"
            self.meetings.hear(event.agent, now, meet=not is_word)

    def on_fence(self, event: ProxyFence) -> None:
        """Some lanes fence what they wrote, and what the others wrote before all met."""
        if "shared" in event.kinds:
            self.meetings.fence(event.agent, event.lanes, self._tick())

    def on_issue(self, event: Issued) -> None:
        """Remember what the warp had done."""
        parent = event.parent
        known = self.meetings.of(parent), self.handed.of(parent)
        self.issued[event.operation] = parent, *known

    def on_end(self, event: Ended) -> None:
        """Forget the operation."""
        self.running.pop()
        del self.issued[event.operation]

    def on_exit(self, event: Exited) -> None:
        """Forget a CTA: its warps, its memories, and who waited for operations long over."""
        for agent in event.agents:
            self.meetings.warps.pop(agent, None)
        self.handed.forget(event.agents)
        for unit in event.units:
            self.cells.pop(unit, None)
        if not self.issued:
            self.waited.clear()

    def on_access(self, event: Access) -> None:
        """Compare, then note."""
        if event.unit.kind not in ("shared", "global"):
            return
        cells = self.cells.get(event.unit)
        if cells is None:
            cells = self.cells[event.unit] = LaneCells(event.unit.cells)
        cells.hold(event.cells)
        if event.lanes is None:
            self._operation(cells, event)
            return
        lanes = np.repeat(event.lanes, len(event.cells) // len(event.lanes))
        if event.atomic:
            self._read(cells, event, lanes)
            self._note_atomic(cells, event, lanes)
        elif event.write:
            self._write(cells, event, lanes)
        else:
            self._read(cells, event, lanes)

    def _who(self, event: Access) -> tuple[int, int, int]:
        """Whose access it is, when it is made, and where."""
        return event.agent, self._tick(), self.report.at

    def _read(self, cells: LaneCells, event: Access, lanes: Lanes) -> None:
        last = cells.writes.of(event.cells, event.bytes_mask, lanes)
        fresh = last.time > self.meetings.of(event.agent).knows(last.by, last.lane)
        fresh &= (last.agent == event.agent + 1) & (last.lane != last.by)
        if np.count_nonzero(fresh):
            doing = "atomically updates" if event.atomic and event.write else "reads"
            self.report(
                rules.WARP_SYNC,
                f"a lane {doing} what another lane of its warp wrote at "
                f"{self._line(last, fresh)} since they met",
            )
        self._told(self.handed.of(event.agent), event.agent, last, "a lane")

    def _line(self, last: Last, found: NDArray[np.bool_]) -> str:
        """Where the first of these was done."""
        return self.report.line(int(last.place[found.argmax()]))

    def _told(self, known: Known, own: int, last: Last, what: str) -> None:
        """Lanes must publish other warps' writes after they met the writing ones."""
        at = unmet(known, own, last.agent, last.time, last.lane)
        if at is not None:
            self.report(
                rules.WARP_SYNC,
                f"{what} reads what lane {int(last.lane[at])} of another warp wrote at "
                f"{self.report.line(int(last.place[at]))}, and the lane "
                "that publishes it had not met that one since",
            )

    def _note_atomic(self, cells: LaneCells, event: Access, lanes: Lanes) -> None:
        """Remember an atomic operation; where several lanes reach one cell, that there are some."""
        who = self._who(event)
        cells.atomics.set(event.cells, event.bytes_mask, lanes, who, mixed=True)
        if event.write:
            cells.writes.forget(event.cells)

    def _write(self, cells: LaneCells, event: Access, lanes: Lanes) -> None:
        where = event.cells
        readers = cells.reader[where]
        for operation in np.unique(readers[readers > 0]).tolist():
            self._after_wait(event.agent, operation, lanes[readers == operation])
        self._beside_atomics(cells, event, lanes)
        cells.reader[where] = 0
        cells.writes.set(where, event.bytes_mask, lanes, self._who(event))

    def _beside_atomics(self, cells: LaneCells, event: Access, lanes: Lanes) -> None:
        """A plain store to where another lane ran an atomic operation since they met."""
        last = cells.atomics.of(event.cells, event.bytes_mask, lanes)
        others = (last.agent == event.agent + 1) & (last.lane != last.by)
        if not np.count_nonzero(others):
            return
        warp = self.meetings.of(event.agent)
        met = np.where(last.lane == SEVERAL, warp.met, warp.knows(last.by, last.lane))
        others &= last.time > met
        if np.count_nonzero(others):
            self.report(
                rules.WARP_SYNC,
                "a lane writes to what another lane of its warp updated atomically at "
                f"{self._line(last, others)} since they met",
            )

    def _after_wait(self, agent: int, operation: int, lanes: NDArray[np.intp]) -> None:
        """Lanes write to what an operation read, for which some lanes of their warp waited."""
        if operation not in self.waited:
            return
        when, waited = self.waited[operation]
        others = np.unique(lanes[~waited[lanes]])
        known = self.meetings.of(agent).knows(others[:, None], np.flatnonzero(waited))
        if (when > known.max(axis=1, initial=0)).any():
            text = "a lane writes to memory that an operation read and only other lanes waited for"
            self.report(rules.WARP_SYNC, f"{text} since they met")

    def _operation(self, cells: LaneCells, event: Access) -> None:
        """An operation reads, for the one lane that started it; or overwrites what lanes wrote."""
        where = event.cells
        if event.write or not self.running:
            cells.writes.forget(where)
            return
        operation = self.running[-1]
        parent, warp, known = self.issued[operation]
        cells.reader[where] = operation
        last = cells.writes.of(where, event.bytes_mask, np.zeros(len(where), np.intp))
        mine = last.agent == parent + 1
        self._held_against(warp, last.time[mine], last.lane[mine], event.what)
        self._told(known, parent, last, event.what)

    @staticmethod
    def _one_knows(warp: Met, times: NDArray[np.int64], lanes: NDArray[np.int8]) -> bool:
        """Whether some lane, as the one that started an operation, knows of all these writes."""
        fresh = times > warp.met
        if not fresh.any() or (lanes[fresh] == lanes[fresh][0]).all():
            return True
        latest = np.zeros(WIDTH, np.int64)
        np.maximum.at(latest, lanes[fresh], times[fresh])
        unknown = (latest > warp.pairs) & ~np.eye(WIDTH, dtype=bool)
        return bool((~unknown.any(axis=1)).any())

    def _held_against(
        self, warp: Met, times: NDArray[np.int64], lanes: NDArray[np.int8], what: str
    ) -> None:
        """Of what an operation reads, what its warp wrote: when, and which lanes."""
        if len(lanes) and not self._one_knows(warp, times, lanes):
            text = "was started by one lane and reads what others wrote since they met"
            self.report(rules.WARP_SYNC, f"{what} {text}")
        since_others = (times > warp.heard) & (times < warp.fence)
        if (since_others & (times > warp.fenced[lanes])).any():
            text = "reads writes of lanes that neither fenced nor met the lane that fenced"
            self.report(rules.WARP_FENCE, f"{what} {text}")
