"""Give times to a recording: what each warp and each unit does, and when, in cycles of a device.

Discrete events. A warp goes through its steps: it waits for channels and for what it loaded, takes
issue slots of its scheduler, starts operations, releases channels. An operation takes turns at the
servers that it needs. No number of the kernel is computed again.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kernelpack.predict.blocks import GLOBAL, SHARED, TRIGGER, WAIT, Cost
from kernelpack.predict.device import Device
from kernelpack.predict.pieces import Piece, Pieces
from kernelpack.predict.recording import Operation, Recording, Step, Track
from kernelpack.predict.servers import Multiprocessor

SECTOR_BYTES = 32
WARP = 32
"""Threads of a warp."""
TMA_ROW_BYTES = 128
MOST_AHEAD = 600
"""Cycles by which ptxas moves a load ahead, at most: registers hold what was loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the rest of the card leaves to a multiprocessor.

    Attributes:
        hbm: bytes a cycle from memory.
        ingest: bytes a cycle from L2.
        missing: of each allocation, the part of the bytes read that L2 does not have.
        stored: of each allocation, the part of the bytes written that goes on to memory.

    """

    hbm: float
    ingest: float
    missing: Sequence[float]
    stored: Sequence[float]


class Cause(NamedTuple):
    """Who released a channel: a warp, and the operation that did it for the warp, or 0."""

    agent: int
    operation: int


_NOBODY = Cause(-1, 0)


@dataclass(slots=True)
class Wait:
    """A wait that took time: of a warp, from when to when, and what ended it."""

    agent: int
    begin: float
    end: float
    cause: Cause


@dataclass(slots=True, kw_only=True)
class Replay:
    """Times of a recording. All are cycles from the first CTA's start.

    Attributes:
        recording: of the first copy.
        clusters: how many copies ran.
        cycles: the end of the last warp and of the last operation.
        half: when half of the steps were run.
        steps: how many were run.
        waited: when the first warp had waited for the launch before, 0 where none does.
        triggered: when the last CTA let the next launch begin, 0 where none does.
        stuck: whether a warp waits for what never comes: the replay is not one of the recording.
        busy: cycles that each kind of server worked, on the busiest multiprocessor.
        waits: those that took time.
        spans: when each operation ran: number → begin, end. Of the first copy alone.
        ran: when each step ran, by agent, as begin, end and the step. Of the first copy alone.

    """

    recording: Recording
    clusters: int = 0
    cycles: float = 0.0
    half: float = 0.0
    steps: int = 0
    waited: float = 0.0
    triggered: float = 0.0
    stuck: bool = False
    busy: dict[str, float] = field(default_factory=dict)
    last: int = -1
    """The warp that ended last."""
    waits: list[Wait] = field(default_factory=list)
    spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    ran: dict[int, list[tuple[float, float, Step]]] = field(default_factory=dict)


@dataclass(slots=True)
class _Channel:
    """How often a channel was released, by whom last, and who waits for how many releases."""

    count: int = 0
    cause: Cause = _NOBODY
    waiting: list[tuple[int, "_Warp"]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Warp:
    """A warp of a copy of a cluster, and how far it is."""

    track: Track
    pieces: Sequence[Piece]
    copy: "_Copy"
    sm: Multiprocessor
    scheduler: int
    place: int = 0
    awaited: int = 0
    """How many of the waits of its step are over."""
    began: float = -1.0
    pending: dict[int, float] = field(default_factory=dict)
    """A register that a load will fill → when."""
    stretch: float = 0.0
    """When the code began in which ptxas moves loads ahead."""
    loaded: set[int] = field(default_factory=set)
    """Registers that were loaded since."""
    copied: float = 0.0
    """When all cp.async that it started are done."""


@dataclass(slots=True, eq=False)
class _Copy:
    """A cluster that runs: its channels, and how many of its warps are left."""

    number: int
    recording: Recording
    sms: Mapping[int, Multiprocessor]
    channels: dict[int, _Channel] = field(default_factory=dict)
    left: int = 0
    done: dict[int, float] = field(default_factory=dict)
    """Queue → when the last operation in it is done."""

    def channel(self, number: int) -> _Channel:
        """One of its channels."""
        return self.channels.setdefault(number, _Channel())


class Replayer:
    """Runs copies of recorded clusters on a group of multiprocessors.

    Args:
        recordings: of a cluster each; copies take them in turn.
        pieces: of the entry's blocks.
        device: rates and latencies.
        load: what the rest of the card leaves.

    """

    def __init__(
        self, recordings: Sequence[Recording], pieces: Pieces, device: Device, load: Load
    ) -> None:
        self.recordings, self.pieces, self.device, self.load = recordings, pieces, device, load
        self.events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self.count = 0
        self.result = Replay(recording=recordings[0])
        self.sms = [Multiprocessor() for _ in recordings[0].ctas]
        self.left = self.made = self.unfinished = 0
        self.half = 0
        """Steps after which half of them are over."""

    def run(self, *, clusters: int, resident: int) -> Replay:
        """Run so many copies, so many of them at a time; one starts where another ended."""
        self.left = self.result.clusters = clusters
        turns = (self.recordings[n % len(self.recordings)] for n in range(clusters))
        self.half = sum(one.steps for one in turns) // 2
        for _ in range(min(clusters, resident)):
            self._start(0.0)
        while self.events:
            at, _, what, arguments = heapq.heappop(self.events)
            what(at, *arguments)
        result = self.result
        result.stuck = bool(self.unfinished) and all(
            one.steps == one.all_steps for one in self.recordings
        )
        for sm in self.sms:
            for name in ("schedulers", "special", "tensor", "tensor_memory"):
                servers = getattr(sm, name)
                self._note(servers[0].name, max(server.busy for server in servers))
            for server in (sm.shared, sm.tma, sm.ingest, sm.hbm, sm.egress, sm.dsmem):
                self._note(server.name, server.busy)
        return self.result

    def _note(self, name: str, busy: float) -> None:
        self.result.busy[name] = max(self.result.busy.get(name, 0.0), busy)

    def _at(self, when: float, what: Callable[..., None], *arguments: object) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, what, arguments))

    def _start(self, at: float) -> None:
        """A cluster begins."""
        if self.made == self.left:
            return
        recording = self.recordings[self.made % len(self.recordings)]
        copy = _Copy(self.made, recording, dict(zip(recording.ctas, self.sms, strict=True)))
        self.made += 1
        tracks, pieces = list(recording.tracks.values()), self.pieces.of(recording)
        copy.left = len(tracks)
        self.unfinished += len(tracks)
        for track in tracks:
            place = (track.index + copy.number) % 4
            warp = _Warp(track, pieces[track.agent], copy, copy.sms[track.cta], place)
            self._at(at + self.device.cta_start, self._go, warp)

    # -- warps --------------------------------------------------------------------------------

    def _go(self, at: float, warp: _Warp) -> None:
        """A warp's next steps, until something is to be waited for, or something else comes."""
        while True:
            end = self._next(at, warp)
            if end is None:
                return
            if self.events and self.events[0][0] < end:
                self._at(end, self._go, warp)
                return
            at = end

    def _next(self, at: float, warp: _Warp) -> float | None:
        """A warp's next step; when it ends, None where it cannot be run yet or is no more."""
        track, copy = warp.track, warp.copy
        if warp.place == len(warp.pieces):
            self._end(at, warp)
            return None
        step, cost = warp.pieces[warp.place]
        if warp.began < 0:
            warp.began = at
            for arrived in step.before:
                self._release(at, copy, arrived, Cause(track.agent, 0))
        while warp.awaited < len(step.awaits):
            wanted = step.awaits[warp.awaited]
            channel = copy.channel(wanted.channel)
            if channel.count < wanted.releases:
                channel.waiting.append((wanted.releases, warp))
                return None
            if at > warp.began:
                self._waited(warp, at, channel.cause)
            warp.awaited += 1
        ready = self._ready(at, warp, cost)
        if ready > at:  # others may issue until then
            self._at(ready, self._go, warp)
            return None
        warp.awaited, warp.began = 0, -1.0
        warp.place += 1
        return self._step(at, warp, step, cost)

    def _ready(self, at: float, warp: _Warp, cost: Cost) -> float:
        """When the registers that a step uses are there."""
        if warp.pending:
            for index in cost.uses & warp.pending.keys():
                at = max(at, warp.pending.pop(index))
        return at

    def _waited(self, warp: _Warp, at: float, cause: Cause) -> None:
        if not warp.copy.number:
            self.result.waits.append(Wait(warp.track.agent, warp.began, at, cause))
        warp.began = at

    def _end(self, at: float, warp: _Warp) -> None:
        if at >= self.result.cycles or self.result.last < 0:
            self.result.last = warp.track.agent
        self.result.cycles = max(self.result.cycles, at)
        warp.copy.left -= 1
        self.unfinished -= 1
        if not warp.copy.left:
            self._at(at, self._start)

    def _step(self, at: float, warp: _Warp, step: Step, cost: Cost) -> float:
        """Run a step; when the warp can go on."""
        self._count(at, step, cost)
        end = self._issue(at, warp, cost)
        if step.wavefronts or step.sectors_read or step.sectors_written or cost.loads:
            end = self._access(at, end, warp, step, cost)
        if cost.ends or step.awaits:
            warp.stretch = end
            warp.loaded.clear()
        for number in step.issues:
            self._at(end, self._operate, warp, warp.copy.recording.operations[number])
        for channel in step.releases:
            self._at(end, self._release, warp.copy, channel, Cause(warp.track.agent, 0))
        if not warp.copy.number:
            self.result.ran.setdefault(warp.track.agent, []).append((at, end, step))
        return end

    def _count(self, at: float, step: Step, cost: Cost) -> None:
        """Note how far the whole is, and what other launches wait for."""
        result = self.result
        result.steps += step.count
        if result.steps <= self.half:
            result.half = at
        if cost.mark == WAIT and not result.waited:
            result.waited = at
        elif cost.mark == TRIGGER:
            result.triggered = max(result.triggered, at)

    def _issue(self, at: float, warp: _Warp, cost: Cost) -> float:
        """Issue a step's instructions; when the warp can go on."""
        sm, scheduler = warp.sm, warp.scheduler
        end = sm.schedulers[scheduler].share(at, cost.slots / self.device.issue)
        end = max(end, at + cost.length)
        if cost.special:
            cycles = cost.special * WARP / self.device.special
            end = max(end, sm.special[scheduler].take(at, cycles))
        if cost.products:
            cycles = cost.products * self.device.mma
            end = max(end, sm.tensor[scheduler].take(at, cycles) - cycles)
        late = {i: at + ready for i, ready in cost.late.items() if at + ready > end}
        warp.pending.update(late)
        return end

    def _access(self, begin: float, end: float, warp: _Warp, step: Step, cost: Cost) -> float:
        """A step's own loads and stores; when the warp can go on."""
        sm, device = warp.sm, self.device
        ahead = begin if cost.uses & warp.loaded else max(warp.stretch, begin - MOST_AHEAD)
        ready = {SHARED: begin, GLOBAL: ahead + device.load_shared}
        if step.wavefronts:
            ready[SHARED] = sm.shared.take(begin, step.wavefronts) + device.load_shared
        if step.sectors_read:
            there = self._read(begin, sm, step.sectors_read * SECTOR_BYTES, step.source)
            missing = self._missing(step.source)
            latency = device.load_l2 + missing * (device.load_hbm - device.load_l2)
            ready[GLOBAL] = max(there, ahead + (there - begin) + latency)
        if step.sectors_written:
            self._write(begin, sm, step.sectors_written * SECTOR_BYTES, step.source)
        for kind, rest in cost.waits.items():
            end = max(end, ready[kind] + rest)
        for index, kind in cost.loads.items():
            warp.loaded.add(index)
            if ready[kind] > end:
                warp.pending[index] = ready[kind]
        return end

    # -- memory -------------------------------------------------------------------------------

    def _missing(self, source: int) -> float:
        return self.load.missing[source] if source >= 0 else 0.0

    def _fetch(self, at: float, sm: Multiprocessor, size: float, source: int) -> float:
        """What L2 misses of so many bytes, from memory; when it is there."""
        missed = size * self._missing(source)
        return sm.hbm.take(at, missed / self.load.hbm) if missed else at

    def _read(self, at: float, sm: Multiprocessor, size: float, source: int) -> float:
        """Bytes from L2, and from memory as far as L2 misses them."""
        there = self._fetch(at, sm, size, source)
        return max(there, sm.ingest.take(at, size / self.load.ingest))

    def _write(self, at: float, sm: Multiprocessor, size: float, source: int) -> float:
        end = sm.egress.take(at, size / self.device.egress)
        stored = size * (self.load.stored[source] if source >= 0 else 1.0)
        sm.hbm.take(at, stored * self.device.hbm_write / self.load.hbm)
        done = end + self.device.store
        self.result.cycles = max(self.result.cycles, end)
        return done

    # -- operations ---------------------------------------------------------------------------

    def _operate(self, at: float, warp: _Warp, operation: Operation) -> None:
        """An operation starts; its end is worked out at once."""
        copy, cause = warp.copy, Cause(warp.track.agent, operation.number)
        end = self._time(at, warp, operation)
        if operation.queue is not None:
            end = max(end, copy.done.get(operation.queue, 0.0))
            copy.done[operation.queue] = end
        for channel in operation.releases:
            self._at(end, self._release, copy, channel, cause)
        if not copy.number:
            self.result.spans[operation.number] = at, end
        self.result.cycles = max(self.result.cycles, end if operation.releases else 0.0)

    def _time(self, at: float, warp: _Warp, operation: Operation) -> float:
        """When an operation is done, by what it moves."""
        name, sm, device = operation.name, warp.sm, self.device
        if name.startswith("tcgen05.commit"):
            return at + device.commit
        if name.startswith("cp.async.mbarrier"):
            return max(at, warp.copied)
        if name.startswith("wgmma"):
            return self._wgmma(at, warp, operation)
        if name.startswith(("tcgen05.mma", "tcgen05.cp")):
            return self._tcgen05(at, warp, operation)
        if name.startswith(("tcgen05.ld", "tcgen05.st")):
            server = sm.tensor_memory[warp.scheduler]
            return server.take(at, _registers(name)) + device.load_shared
        if operation.global_read:
            return self._copy_in(at, warp, operation)
        if operation.global_written:
            return self._copy_out(at, sm, operation)
        if operation.shared_written:
            return self._to_peer(at, warp, operation)
        return at

    def _wgmma(self, at: float, warp: _Warp, operation: Operation) -> float:
        """A warp's part: 16 rows on the tensor core of its scheduler; B is read once for four."""
        device = self.device
        cycles = max(operation.columns / 2, device.tensor_least)
        read = sum(operation.shared_read.values())
        b = min(read, operation.columns * 32)
        size = (read - b) + b / 4
        port = warp.sm.shared.take(at, size / device.shared)
        end = warp.sm.tensor[warp.scheduler].take(at, cycles)
        return max(port, end) + device.tensor_latency

    def _tcgen05(self, at: float, warp: _Warp, operation: Operation) -> float:
        """On the pipe of the CTA or pair: its columns, or its operands through the port."""
        device = self.device
        cycles = operation.columns / 2 if operation.name.startswith("tcgen05.mma") else 0.0
        for size in operation.shared_read.values():
            cycles = max(cycles, size / device.shared)
        cycles = max(cycles, device.tensor_least)
        sms = warp.copy.sms
        end = sms[min(operation.shared_read, default=warp.track.cta)].tensor[0].take(at, cycles)
        for cta, size in operation.shared_read.items():
            sms[cta].shared.busy += size / device.shared
        return end + device.tensor_latency

    def _copy_in(self, at: float, warp: _Warp, operation: Operation) -> float:
        sm, device, size = warp.sm, self.device, operation.global_read
        is_bulk = operation.name.startswith(("cp.async.bulk", "cp.reduce"))
        if is_bulk:
            rows = max(size / TMA_ROW_BYTES, operation.rows)
            at = sm.tma.take(at, max(rows * device.tma_rows, device.tma_operation))
        end = self._fetch(at, sm, size, operation.source)
        for cta in operation.shared_written or (warp.track.cta,):
            ingest = warp.copy.sms[cta].ingest
            end = max(end, ingest.take(at, size / self.load.ingest))
        missing = self._missing(operation.source)
        fast, slow = (
            (device.copy_l2, device.copy_hbm) if is_bulk else (device.load_l2, device.load_hbm)
        )
        end += fast + missing * (slow - fast)
        warp.copied = max(warp.copied, end)
        return end

    def _copy_out(self, at: float, sm: Multiprocessor, operation: Operation) -> float:
        read = sum(operation.shared_read.values())
        port = sm.shared.take(at, read / self.device.shared)
        return self._write(port, sm, operation.global_written, operation.source)

    def _to_peer(self, at: float, warp: _Warp, operation: Operation) -> float:
        size = sum(operation.shared_written.values())
        return warp.sm.dsmem.take(at, size / self.device.dsmem) + self.device.remote

    # -- channels -----------------------------------------------------------------------------

    def _release(self, at: float, copy: _Copy, number: int, cause: Cause) -> None:
        channel = copy.channel(number)
        channel.count += 1
        channel.cause = cause
        if not channel.waiting:
            return
        woken = [warp for wanted, warp in channel.waiting if wanted <= channel.count]
        channel.waiting = [each for each in channel.waiting if each[0] > channel.count]
        for warp in woken:
            self._at(at + self.device.wake, self._go, warp)


def _registers(name: str) -> int:
    """Registers a thread of a tcgen05.ld or .st: cycles of a scheduler's port."""
    words = name.split(".")
    factor = {"16x256b": 4, "16x128b": 2}
    shape = next((word for word in words if "b" in word and "x" in word), "")
    times = next((int(w[1:]) for w in words if w[:1] == "x" and w[1:].isdecimal()), 1)
    return factor.get(shape, 1) * times
