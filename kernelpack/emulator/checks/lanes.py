"""Lanes of one warp that rely on running in step (PTX ISA 9.7.13.2, 9.7.12).

A lane may read what another lane of its warp wrote only after the two have met: at bar.warp.sync,
at a barrier, or at an mbarrier wait. The same holds for an operation that one lane starts and that
reads what the others wrote. On today's machines converged lanes do run in step, hence `strict`.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.events import (
    Access,
    Acquire,
    Began,
    Bus,
    Ended,
    Issued,
    LanesMet,
    Unit,
)
from kernelpack.emulator.faults import Level, Rule

RULE = Rule(name="warp-sync", level=Level.STRICT, section="9.7.13.2")


class _Writers:
    """Per cell: the warp that wrote last (plus one), its meeting count then, and the lane."""

    def __init__(self, cells: int) -> None:
        self.agent = np.zeros(cells, np.int32)
        self.meeting = np.zeros(cells, np.int32)
        self.lane = np.zeros(cells, np.int8)


class LaneRaces:
    """Holds reads of shared memory against writes of other lanes of the same warp."""

    level = Level.STRICT

    def __init__(self, report: Callable[..., None]) -> None:
        self.report = report
        self.meetings: dict[int, int] = {}
        self.writers: dict[Unit, _Writers] = {}
        self.issued: dict[int, tuple[int, int]] = {}
        self.running: list[int] = []

    def listen(self, bus: Bus) -> None:
        """Hear of accesses, meetings and operations."""
        bus.listen(Access, self.on_access)
        bus.listen(LanesMet, self.on_meeting)
        bus.listen(Acquire, self.on_meeting)
        bus.listen(Issued, self.on_issue)
        bus.listen(Began, lambda event: self.running.append(event.operation))
        bus.listen(Ended, self.on_end)

    def on_meeting(self, event: LanesMet | Acquire) -> None:
        """The lanes of a warp have met."""
        self.meetings[event.agent] = self.meetings.get(event.agent, 0) + 1

    def on_issue(self, event: Issued) -> None:
        """Remember when the warp's lanes had met last."""
        self.issued[event.operation] = event.parent, self.meetings.get(event.parent, 0)

    def on_end(self, event: Ended) -> None:
        """Forget the operation."""
        self.running.pop()
        del self.issued[event.operation]

    def on_access(self, event: Access) -> None:
        """Compare a read, note a write."""
        if event.unit.kind != "shared":
            return
        writers = self.writers.setdefault(event.unit, _Writers(event.unit.cells))
        if event.lanes is None:
            self._operation(writers, event)
            return
        now = self.meetings.get(event.agent, 0)
        lanes = np.repeat(event.lanes, len(event.cells) // len(event.lanes))
        if not event.write:
            self._lanes(writers, event, lanes, now)
            return
        writers.agent[event.cells] = event.agent + 1
        writers.meeting[event.cells] = now
        writers.lane[event.cells] = lanes

    def _lanes(self, writers: _Writers, event: Access, lanes: NDArray[np.intp], now: int) -> None:
        fresh = _since(writers, event.cells, event.agent, now)
        if (fresh & (writers.lane[event.cells] != lanes)).any():
            self.report(RULE, "a lane reads what another lane of its warp wrote since they met")

    def _operation(self, writers: _Writers, event: Access) -> None:
        """An operation reads: its one lane cannot have written cells that several lanes did."""
        if event.write or not self.running:
            return
        parent, then = self.issued[self.running[-1]]
        fresh = _since(writers, event.cells, parent, then)
        lanes = writers.lane[event.cells][fresh]
        if len(lanes) and (lanes != lanes[0]).any():
            text = "was started by one lane and reads what others wrote since they met"
            self.report(RULE, f"{event.what} {text}")


def _since(
    writers: _Writers, cells: NDArray[np.intp], agent: int, meeting: int
) -> NDArray[np.bool_]:
    """Cells that a warp wrote after its lanes met last."""
    mine = writers.agent[cells] == agent + 1
    return np.asarray(mine & (writers.meeting[cells] == meeting))
