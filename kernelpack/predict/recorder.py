"""Listens to a run of the emulator and keeps what a replay needs."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping

import numpy as np

from kernelpack.emulator.events import (
    Access,
    Acquire,
    AgentStarted,
    Began,
    Bus,
    Ended,
    Issued,
    Ran,
    Release,
)
from kernelpack.predict.recording import Await, Operation, Recording, Step, Track, Traffic

SECTOR_CELLS = 8
"""4-byte cells of a sector of L2."""
LINE_CELLS = 32
CACHED_SECTORS = 1024
"""32 KiB of L1: what a CTA reads again soon comes from there."""
BANKS = 32
TENSOR_COLUMNS = 512
_POSITION = re.compile(r"cta \((\d+), (\d+), (\d+)\)")
_WARP = re.compile(r"warp (\d+) of ")


class Recorder:
    """Give it as one of a run's checks, as `recorder.join`; then ask for its `recording`.

    Args:
        allocations: of global memory: byte offset → size and name.
        number: of the cluster that runs.

    """

    def __init__(self, allocations: Mapping[int, tuple[int, str]], number: int = 0) -> None:
        self.number = number
        self.starts = sorted(allocations)
        self.numbers = {start: number for number, start in enumerate(self.starts)}
        self.allocations = allocations
        self.tracks: dict[int, Track] = {}
        self.cta_of: dict[int, int] = {}
        self.cta_at: dict[tuple[str, ...], int] = {}
        self.operations: dict[int, Operation] = {}
        self.working: list[tuple[int, Operation]] = []
        self.open: dict[int, Step] = {}
        """Agent → what it did since its last step ended."""
        self.most: dict[tuple[int, bool], int] = {}
        """Agent, and whether it wrote → sectors of the allocation that its step has most of."""
        self.plain: dict[tuple[int, int], Step] = {}
        """Steps that do nothing but compute: each is kept once."""
        self.columns = self.steps = 0
        self.channels: dict[object, int] = {}
        self.released: Counter[int] = Counter()
        self.queues: dict[int, int] = {}
        self.units: dict[int, int] = {}
        """id of a shared memory → the number of its CTA."""
        self.moved: dict[int, list[int]] = {}
        """Start of an allocation → bytes read, written and read by lists of rows."""
        self.lines: dict[int, set[int]] = {}
        self.stored: dict[int, set[int]] = {}
        self.cached: dict[int, dict[int, None]] = {}
        """CTA → the sectors that its L1 has, the oldest first."""

    def join(self, _report: object) -> "Recorder":
        """Itself, as the check that a run asks for; it reports nothing."""
        return self

    def listen(self, bus: Bus) -> None:
        """Hear of everything that takes time, and of who waits for whom."""
        bus.listen(AgentStarted, self.on_start)
        bus.listen(Ran, self.on_run)
        bus.listen(Issued, self.on_issue)
        bus.listen(Began, self.on_begin)
        bus.listen(Ended, self.on_end)
        bus.listen(Release, self.on_release)
        bus.listen(Acquire, self.on_acquire)
        bus.listen(Access, self.on_access)

    def recording(self, all_steps: int) -> Recording:
        """What happened so far, of a cluster that has so many warp instructions in all."""
        traffic = (
            Traffic(
                name=self.allocations[start][1],
                size=self.allocations[start][0],
                read=read,
                written=written,
                scattered=scattered,
                lines=np.array(sorted(self.lines.get(start, ())), np.int64),
                written_lines=len(self.stored.get(start, ())),
            )
            for start in self.starts
            for read, written, scattered in [self.moved.get(start, (0, 0, 0))]
        )
        return Recording(
            tracks=self.tracks,
            operations=self.operations,
            traffic=tuple(traffic),
            ctas=tuple(self.cta_at.values()),
            columns=self.columns,
            steps=self.steps,
            all_steps=max(all_steps, self.steps),
            number=self.number,
        )

    # -- who ----------------------------------------------------------------------------------

    def on_start(self, event: AgentStarted) -> None:
        """A warp, or a unit."""
        self.cta_of[event.agent] = event.cta
        position = _POSITION.search(event.name)
        if position:
            self.cta_at[position.groups()] = event.cta
        found = _WARP.match(event.name)
        if event.is_warp and found:
            self.tracks[event.agent] = Track(event.agent, event.cta, int(found[1]))

    def _open(self, agent: int) -> Step:
        if agent not in self.open:
            self.open[agent] = Step(0, 0)
        return self.open[agent]

    def _channel(self, channel: object) -> int:
        return self.channels.setdefault(channel, len(self.channels))

    # -- what happens -------------------------------------------------------------------------

    def on_run(self, event: Ran) -> None:
        """A step ends; what was heard of its warp since the last one is part of it."""
        self.steps += event.count
        for is_written in (False, True):
            self.most.pop((event.agent, is_written), None)
        step = self.open.pop(event.agent, None)
        if step is None:
            key = (event.first, event.count)
            step = self.plain.get(key) or self.plain.setdefault(key, Step(*key))
        else:
            step.first, step.count = event.first, event.count
        self.tracks[event.agent].steps.append(step)

    def on_issue(self, event: Issued) -> None:
        """An operation is in flight."""
        words = event.label.split()
        name = words[1] if words[0].startswith("@") else words[0]
        in_order = not name.startswith("cp.")
        queue = self.queues.setdefault(event.agent, len(self.queues)) if in_order else None
        operation = Operation(event.operation, name, event.parent, queue)
        if name.startswith("wgmma"):
            operation.columns = _columns(name)
        self.operations[event.operation] = operation
        self._open(event.parent).issues += (event.operation,)

    def on_begin(self, event: Began) -> None:
        """Accesses and releases of its agent until its end are its own."""
        self.working.append((event.agent, self.operations[event.operation]))

    def on_end(self, _event: Ended) -> None:
        """It has had its effect."""
        self.working.pop()

    def _worker(self, agent: int) -> Operation | None:
        """The operation that is being done by an agent."""
        if self.working and self.working[-1][0] == agent:
            return self.working[-1][1]
        return None

    def on_release(self, event: Release) -> None:
        """By a warp, or by the operation that is being done."""
        channel = self._channel(event.channel)
        operation = self._worker(event.agent)
        if operation is not None:
            operation.releases.append(channel)
        elif event.agent in self.tracks:
            self._open(event.agent).releases += (channel,)
        else:
            return
        self.released[channel] += 1

    def on_acquire(self, event: Acquire) -> None:
        """A warp waited for all that was released to a channel."""
        channel = self.channels.get(event.channel)
        if channel is not None and event.agent in self.tracks:
            step = self._open(event.agent)
            step.before, step.releases = step.before + step.releases, ()
            step.awaits += (Await(channel, self.released[channel]),)

    # -- what is moved ------------------------------------------------------------------------

    def on_access(self, event: Access) -> None:
        """By a warp, or by an operation, to one of the three memories."""
        operation = self._worker(event.agent)
        kind = event.unit.kind
        if operation is None:
            if event.did == "allocated":
                self.columns += len(event.cells) // 8  # groups of 16 lanes
            if event.agent in self.tracks and not event.mbarrier:
                self._of_warp(event, kind)
        elif kind == "global":
            self._move(operation, event)
        elif kind == "shared":
            moved = operation.shared_written if event.write else operation.shared_read
            cta = self._cta_of(event)
            moved[cta] = moved.get(cta, 0) + 4 * len(event.cells)
        elif kind == "tensor" and event.write:
            columns = len(np.unique(event.cells % TENSOR_COLUMNS))
            operation.columns = max(operation.columns, columns)

    def _of_warp(self, event: Access, kind: str) -> None:
        step = self._open(event.agent)
        if kind == "shared":
            step.wavefronts += _wavefronts(event.cells)
        elif kind == "global":
            sectors = self._missed(event)
            place = self._count(event, len(sectors) * SECTOR_CELLS * 4, scattered=True)
            key = event.agent, event.write
            is_most = len(sectors) >= self.most.get(key, 0)
            self.most[key] = max(len(sectors), self.most.get(key, 0))
            if event.write:
                step.sectors_written += len(sectors)
                step.target = place if is_most else step.target
            else:
                step.sectors_read += len(sectors)
                step.source = place if is_most else step.source

    def _missed(self, event: Access) -> list[int]:
        """The sectors that L1 does not have; stores go through it."""
        sectors: list[int] = np.unique(event.cells // SECTOR_CELLS).tolist()
        if event.write or event.atomic:
            return sectors
        cached = self.cached.setdefault(self.cta_of[event.agent], {})
        missed = [sector for sector in sectors if sector not in cached]
        for sector in sectors:
            cached.pop(sector, None)
            cached[sector] = None
        for sector in list(cached)[: max(len(cached) - CACHED_SECTORS, 0)]:
            del cached[sector]
        return missed

    def _move(self, operation: Operation, event: Access) -> None:
        size = 4 * len(event.cells)
        scattered = not operation.name.startswith("cp.async.bulk") or "gather4" in operation.name
        operation.source = self._count(event, size, scattered=scattered)
        operation.rows += 1 + int(np.count_nonzero(np.diff(event.cells) != 1))
        if event.write:
            operation.global_written += size
        else:
            operation.global_read += size

    def _count(self, event: Access, size: int, *, scattered: bool) -> int:
        """Add to the traffic of an allocation; its number."""
        place = bisect_right(self.starts, int(event.cells[0]) * 4) - 1
        start = self.starts[max(place, 0)]
        moved = self.moved.setdefault(start, [0, 0, 0])
        moved[1 if event.write else 0] += size
        lines = set(np.unique(event.cells // LINE_CELLS).tolist())
        stored = self.stored.setdefault(start, set())
        if event.write:
            stored.update(lines)
        else:
            others = lines - stored
            self.lines.setdefault(start, set()).update(others)
            moved[2] += size * len(others) // len(lines) if scattered else 0
        return self.numbers[start]

    def _cta_of(self, event: Access) -> int:
        """The CTA whose shared memory it is."""
        found = self.units.get(id(event.unit))
        if found is None:
            position = _POSITION.search(event.unit.name)
            assert position, event.unit.name
            found = self.units[id(event.unit)] = self.cta_at[position.groups()]
        return found


def _wavefronts(cells: np.ndarray) -> int:
    """Passes through shared memory: the most different cells of one bank."""
    return int(np.bincount(np.unique(cells) % BANKS).max())


def _columns(name: str) -> int:
    """N of a wgmma, from `m64n256k16` in its name."""
    found = re.search(r"m64n(\d+)k", name)
    return int(found[1]) if found else 0
