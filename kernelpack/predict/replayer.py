"""Give times to a recording: what each warp and each unit does, and when, in cycles of a device.

Discrete events. A warp goes through its steps: it waits for channels and for what it loaded, takes
issue slots of its scheduler, starts operations, releases channels. An operation takes turns at the
servers that it needs. No number of the kernel is computed again.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence

from kernelpack.predict.blocks import TRIGGER, WAIT, Cost
from kernelpack.predict.device import Device
from kernelpack.predict.pieces import Pieces
from kernelpack.predict.recording import Operation, Recording, Step
from kernelpack.predict.replay import Cause, Load, Replay, Wait
from kernelpack.predict.running import Copy, Warp
from kernelpack.predict.servers import Multiprocessor, Server
from kernelpack.predict.units import Units


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
        self.recordings, self.pieces, self.device = recordings, pieces, device
        self.units = Units(device, load)
        self.starts, self.pace = Server("start of CTAs"), load.pace
        self.events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self.count = 0
        self.result = Replay(recording=recordings[0])
        self.sms = [Multiprocessor() for _ in recordings[0].ctas]
        for server in self._servers():
            server.slowness = 0.5 if server.name == load.faster else 1.0
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
        result.cycles = max(result.cycles, self.units.stored)
        result.stuck = bool(self.unfinished) and all(
            one.steps == one.all_steps for one in self.recordings
        )
        for server in self._servers():
            result.busy[server.name] = max(result.busy.get(server.name, 0.0), server.busy)
        return result

    def _servers(self) -> Iterator[Server]:
        """Those of all multiprocessors, and that which starts CTAs."""
        for sm in self.sms:
            yield from sm.servers
        yield self.starts

    def _at(self, when: float, what: Callable[..., None], *arguments: object) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, what, arguments))

    def _start(self, at: float) -> None:
        """A cluster begins."""
        if self.made == self.left:
            return
        recording = self.recordings[self.made % len(self.recordings)]
        sms = dict(zip(recording.ctas, self.sms, strict=True))
        copy = Copy(self.made, recording, sms, is_first=at == 0)
        self.made += 1
        begin = self.starts.take(at, self.pace) + self.device.cta_start
        tracks, pieces = list(recording.tracks.values()), self.pieces.of(recording)
        copy.left = len(tracks)
        self.unfinished += len(tracks)
        for track in tracks:
            place = (track.index + copy.number) % 4
            warp = Warp(track, pieces[track.agent], copy, copy.sms[track.cta], place)
            self._at(begin, self._go, warp)

    # -- warps --------------------------------------------------------------------------------

    def _go(self, at: float, warp: Warp) -> None:
        """A warp's next steps, until something is to be waited for, or something else comes."""
        while True:
            end = self._next(at, warp)
            if end is None:
                return
            if self.events and self.events[0][0] < end:
                self._at(end, self._go, warp)
                return
            at = end

    def _next(self, at: float, warp: Warp) -> float | None:
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

    def _ready(self, at: float, warp: Warp, cost: Cost) -> float:
        """When the registers that a step uses are there."""
        if warp.pending:
            for index in cost.uses & warp.pending.keys():
                at = max(at, warp.pending.pop(index))
        return at

    def _waited(self, warp: Warp, at: float, cause: Cause) -> None:
        if not warp.copy.number:
            self.result.waits.append(Wait(warp.track.agent, warp.began, at, cause))
        warp.began = at

    def _end(self, at: float, warp: Warp) -> None:
        if at >= max(self.result.cycles, self.units.stored) or self.result.last < 0:
            self.result.last = warp.track.agent
        self.result.cycles = max(self.result.cycles, at)
        warp.copy.left -= 1
        self.unfinished -= 1
        if not warp.copy.left:
            self._at(at, self._start)

    def _step(self, at: float, warp: Warp, step: Step, cost: Cost) -> float:
        """Run a step; when the warp can go on."""
        self._count(at, step, cost)
        end = self.units.issue(at, warp, cost)
        if step.wavefronts or step.sectors_read or step.sectors_written or cost.loads:
            end = self.units.access(at, end, warp, step, cost)
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

    # -- operations ---------------------------------------------------------------------------

    def _operate(self, at: float, warp: Warp, operation: Operation) -> None:
        """An operation starts; its end is worked out at once."""
        copy, cause = warp.copy, Cause(warp.track.agent, operation.number)
        end = self.units.operate(at, warp, operation)
        if operation.queue is not None:
            end = max(end, copy.done.get(operation.queue, 0.0))
            copy.done[operation.queue] = end
        for channel in operation.releases:
            self._at(end, self._release, copy, channel, cause)
        if not copy.number:
            self.result.spans[operation.number] = at, end
        self.result.cycles = max(self.result.cycles, end if operation.releases else 0.0)

    # -- channels -----------------------------------------------------------------------------

    def _release(self, at: float, copy: Copy, number: int, cause: Cause) -> None:
        channel = copy.channel(number)
        channel.count += 1
        channel.cause = cause
        if not channel.waiting:
            return
        woken = [warp for wanted, warp in channel.waiting if wanted <= channel.count]
        channel.waiting = [each for each in channel.waiting if each[0] > channel.count]
        for warp in woken:
            self._at(at + self.device.wake, self._go, warp)
