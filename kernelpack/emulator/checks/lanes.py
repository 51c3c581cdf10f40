"""Lanes of one warp that rely on running in step (PTX ISA 9.7.13.2, 9.7.12).

A lane may read what another lane of its warp wrote only after the two have met: at bar.warp.sync,
at a barrier, or at an mbarrier wait. The same holds for an operation that one lane starts and that
reads what the others wrote; for a proxy fence of one lane; and for a write to what an operation
read that another lane waited for. On today's machines converged lanes do run in step, hence
`strict`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator import rules
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
    Unit,
)
from kernelpack.emulator.faults import Level

_WIDTH = 32


class _Cells:
    """Per cell: the warp that wrote last (plus one), when, and its lane; which operation read it.

    A warp is its agent, a time a count of this check, an operation its number.
    """

    def __init__(self, cells: int) -> None:
        self.writer = np.zeros(cells, np.int32)
        self.time = np.zeros(cells, np.int64)
        self.lane = np.zeros(cells, np.int8)
        self.reader = np.zeros(cells, np.int64)


_PAIRS: NDArray[np.int64] = np.zeros((_WIDTH, _WIDTH), np.int64)
"""No two lanes have met."""


@dataclass(frozen=True, slots=True)
class _Warp:
    """When the lanes of a warp met last, when they learned of others, when one of them fenced."""

    met: int = 0
    """When all lanes met."""
    pairs: NDArray[np.int64] = field(default_factory=lambda: _PAIRS)
    """[a, b]: up to when lane a knows of lane b, where only some lanes met since."""
    heard: int = 0
    fence: int = 0
    fenced: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_WIDTH, np.int64))
    """Per lane: up to when its writes are fenced, by itself or by one that it met afterwards."""

    def knows(self, lanes: NDArray[Any], others: NDArray[Any]) -> NDArray[np.int64]:
        """Up to when lanes know of what others did."""
        known: NDArray[np.int64] = np.maximum(self.met, self.pairs[lanes, others])
        return known

    def joined(self, lanes: NDArray[np.bool_], now: int) -> "_Warp":
        """Some lanes meet: each knows what any of them knew, and of all they did so far."""
        known = self.pairs[lanes].max(axis=0)
        pairs = self.pairs.copy()
        pairs[lanes] = np.where(lanes, now, known)
        return replace(self, pairs=pairs)


class LaneRaces:
    """Holds accesses to shared memory against those of other lanes of the same warp."""

    level = Level.STRICT

    def __init__(self, report: Callable[..., None]) -> None:
        self.report = report
        self.now = 0
        self.warps: dict[int, _Warp] = {}
        self.cells: dict[Unit, _Cells] = {}
        self.issued: dict[int, tuple[int, _Warp]] = {}
        self.running: list[int] = []
        self.waited: dict[int, tuple[int, NDArray[np.bool_]]] = {}
        """Operation → when some lanes of its warp waited for it, and which."""

    def listen(self, bus: Bus) -> None:
        """Hear of accesses, meetings, fences and operations."""
        bus.listen(Access, self.on_access)
        bus.listen(LanesMet, self.on_meeting)
        bus.listen(Acquire, self.on_acquire)
        bus.listen(ProxyFence, self.on_fence)
        bus.listen(Issued, self.on_issue)
        bus.listen(Began, lambda event: self.running.append(event.operation))
        bus.listen(Ended, self.on_end)
        bus.listen(Exited, self.on_exit)

    def _tick(self) -> int:
        self.now += 1
        return self.now

    def _warp(self, agent: int) -> _Warp:
        return self.warps.get(agent) or _Warp()

    def on_meeting(self, event: LanesMet) -> None:
        """Lanes of a warp have met."""
        warp, now, lanes = self._warp(event.agent), self._tick(), event.lanes
        self.warps[event.agent] = (
            replace(warp, met=now) if lanes is None else warp.joined(lanes, now)
        )

    def on_acquire(self, event: Acquire) -> None:
        """All lanes have met, and learned of others; or some have waited for an operation."""
        if event.relaxed:
            return
        now = self._tick()
        if event.lanes is None or event.lanes.all():
            self.warps[event.agent] = replace(self._warp(event.agent), met=now, heard=now)
        elif isinstance(event.channel, tuple):
            self.waited[event.channel[1]] = now, event.lanes

    def on_fence(self, event: ProxyFence) -> None:
        """Some lanes fence what they wrote, and what the others wrote before all met."""
        if "shared" in event.kinds:
            warp, now = self._warp(event.agent), self._tick()
            known = np.maximum(warp.met, warp.pairs[event.lanes].max(axis=0, initial=0))
            fenced = np.where(event.lanes, now, np.maximum(warp.fenced, known))
            self.warps[event.agent] = replace(warp, fence=now, fenced=fenced)

    def on_issue(self, event: Issued) -> None:
        """Remember what the warp had done."""
        self.issued[event.operation] = event.parent, self._warp(event.parent)

    def on_end(self, event: Ended) -> None:
        """Forget the operation."""
        self.running.pop()
        del self.issued[event.operation]

    def on_exit(self, event: Exited) -> None:
        """Forget a CTA: its warps, its memories, and who waited for operations long over."""
        for agent in event.agents:
            self.warps.pop(agent, None)
        for unit in event.units:
            self.cells.pop(unit, None)
        if not self.issued:
            self.waited.clear()

    def on_access(self, event: Access) -> None:
        """Compare, then note."""
        if event.unit.kind != "shared":
            return
        cells = self.cells.setdefault(event.unit, _Cells(event.unit.cells))
        if event.lanes is None:
            self._operation(cells, event)
            return
        lanes = np.repeat(event.lanes, len(event.cells) // len(event.lanes))
        if event.write:
            self._write(cells, event, lanes)
        else:
            self._read(cells, event, lanes)

    def _read(self, cells: _Cells, event: Access, lanes: NDArray[np.intp]) -> None:
        where = event.cells
        writers = cells.lane[where]
        fresh = cells.time[where] > self._warp(event.agent).knows(lanes, writers)
        mine = cells.writer[where] == event.agent + 1
        if (mine & fresh & (writers != lanes)).any():
            self.report(
                rules.WARP_SYNC, "a lane reads what another lane of its warp wrote since they met"
            )

    def _write(self, cells: _Cells, event: Access, lanes: NDArray[np.intp]) -> None:
        where = event.cells
        readers = cells.reader[where]
        for operation in np.unique(readers[readers > 0]).tolist():
            self._after_wait(event.agent, operation, lanes[readers == operation])
        cells.reader[where] = 0
        cells.writer[where] = event.agent + 1
        cells.time[where] = self._tick()
        cells.lane[where] = lanes

    def _after_wait(self, agent: int, operation: int, lanes: NDArray[np.intp]) -> None:
        """Lanes write to what an operation read, for which some lanes of their warp waited."""
        if operation not in self.waited:
            return
        when, waited = self.waited[operation]
        others = np.unique(lanes[~waited[lanes]])
        known = self._warp(agent).knows(others[:, None], np.flatnonzero(waited))
        if (when > known.max(axis=1, initial=0)).any():
            text = "a lane writes to what an operation read that only others have waited for"
            self.report(rules.WARP_SYNC, f"{text} since they met")

    def _operation(self, cells: _Cells, event: Access) -> None:
        """An operation reads, for the one lane that started it; or overwrites what lanes wrote."""
        where = event.cells
        if event.write or not self.running:
            cells.writer[where] = 0
            return
        operation = self.running[-1]
        parent, warp = self.issued[operation]
        cells.reader[where] = operation
        mine = where[cells.writer[where] == parent + 1]
        self._held_against(warp, cells.time[mine], cells.lane[mine], event.what)

    @staticmethod
    def _one_knows(warp: _Warp, times: NDArray[np.int64], lanes: NDArray[np.int8]) -> bool:
        """Whether some lane, as the one that started an operation, knows of all these writes."""
        fresh = times > warp.met
        if not fresh.any() or (lanes[fresh] == lanes[fresh][0]).all():
            return True
        latest = np.zeros(_WIDTH, np.int64)
        np.maximum.at(latest, lanes[fresh], times[fresh])
        unknown = (latest > warp.pairs) & ~np.eye(_WIDTH, dtype=bool)
        return bool((~unknown.any(axis=1)).any())

    def _held_against(
        self, warp: _Warp, times: NDArray[np.int64], lanes: NDArray[np.int8], what: str
    ) -> None:
        """Of what an operation reads, what its warp wrote: when, and which lanes."""
        if len(lanes) and not self._one_knows(warp, times, lanes):
            text = "was started by one lane and reads what others wrote since they met"
            self.report(rules.WARP_SYNC, f"{what} {text}")
        since_others = (times > warp.heard) & (times < warp.fence)
        if (since_others & (times > warp.fenced[lanes])).any():
            text = "reads what lanes wrote that did not fence, nor met the one that did before it"
            self.report(rules.WARP_FENCE, f"{what} {text}")
