"""A launch over time: when each warp ran, what it stood still for, when each operation was done.

Time is *steps*: warp instructions, in the order in which the schedule ran them, one at a time. It
says what came before what and what overlapped; it says nothing of nanoseconds.
A `Recorder` listens to a run, as a check does, and then has its `Timeline`.
"""

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from kernelpack.emulator.events import (
    Acquire,
    AgentStarted,
    Began,
    Bus,
    Channel,
    Ended,
    Issued,
    Ran,
    Release,
    Waited,
)

_NAME = re.compile(
    r"(?P<name>warp (?P<warp>\d+)|.*?)(?: for warp \d+(?: lane \d+)?)?"
    r" of cta \((\d+), (\d+), (\d+)\)"
)
"""An agent's name; what a pipe does for its several threads is shown as one."""

Position = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A warp ran from step `begin` to step `end`, most of it at instruction `at` of the body."""

    begin: int
    end: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Who ended a wait: an agent, at a step, by an operation or (0) by an instruction."""

    agent: int
    step: int
    operation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A warp stood still for `what`, at instruction `at`; None where the run ended before it."""

    begin: int
    end: int
    what: str
    at: int | None = None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An asynchronous operation: `issuer` started it at step `issued`; at `done` it had its effect.

    `unit` is the agent that did it, `label` the instruction. `ordered`: it was done after
    everything that was issued to that unit before it.
    """

    number: int
    label: str
    unit: int
    issuer: int
    issued: int
    done: int
    ordered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A hardware unit that works on its own: its agent number, its CTA, its name for people."""

    agent: int
    cta: Position
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warp:
    """One warp. `counts`: index of an instruction → instructions run from there on."""

    agent: int
    cta: Position
    index: int
    runs: tuple[Run, ...]
    waits: tuple[Wait, ...]
    counts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A launch over time, in `steps` steps. Everything comes in the order in which it started."""

    steps: int
    warps: tuple[Warp, ...]
    units: tuple[Unit, ...]
    operations: tuple[Operation, ...]


@dataclass(slots=True)
class _Track:
    """A warp's part of the timeline while it grows."""

    cta: Position
    index: int
    runs: list[Run] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    counts: Counter[int] = field(default_factory=Counter)
    here: Counter[int] = field(default_factory=Counter)
    """The counts of the last of `runs`."""

    def ran(self, first: int, count: int, begin: int) -> None:
        """Lengthen the last run, or start the next one; a wait ended at this place."""
        if self.waits and self.waits[-1].at is None and self.waits[-1].end == begin:
            self.waits[-1] = replace(self.waits[-1], at=first)
        self.counts[first] += count
        if self.runs and self.runs[-1].end == begin:
            begin = self.runs.pop().begin
        else:
            self.here.clear()
        self.here[first] += count
        at = max(self.here, key=self.here.__getitem__)
        self.runs.append(Run(begin=begin, end=begin + self.here.total(), at=at))


class Recorder:
    """Listens to a run. Give it as one of the run's checks, as `recorder.join`."""

    def __init__(self) -> None:
        self.now = 0
        self.units: list[Unit] = []
        """Those that had something to do."""
        self.unit_of: dict[int, Unit] = {}
        """Agent → what it is shown as."""
        self.tracks: dict[int, _Track] = {}
        self.flying: dict[int, tuple[Issued, int]] = {}
        self.operations: list[Operation] = []
        self.working: list[Began] = []
        self.released: dict[Channel, Cause] = {}
        self.woken: dict[int, Cause] = {}

    def join(self, _report: object) -> "Recorder":
        """Itself, as the check that a run asks for; it reports nothing."""
        return self

    def listen(self, bus: Bus) -> None:
        """Hear of everything that takes time."""
        bus.listen(AgentStarted, self.on_start)
        bus.listen(Ran, self.on_run)
        bus.listen(Waited, self.on_wait)
        bus.listen(Issued, self.on_issue)
        bus.listen(Began, self.on_begin)
        bus.listen(Ended, self.on_end)
        bus.listen(Release, self.on_release)
        bus.listen(Acquire, self.on_acquire)

    @property
    def timeline(self) -> Timeline:
        """The events so far."""
        warps = (
            Warp(
                agent=agent,
                cta=track.cta,
                index=track.index,
                runs=tuple(track.runs),
                waits=tuple(track.waits),
                counts=tuple(sorted(track.counts.items())),
            )
            for agent, track in self.tracks.items()
        )
        return Timeline(
            steps=self.now,
            warps=tuple(warps),
            units=tuple(self.units),
            operations=tuple(sorted(self.operations, key=lambda operation: operation.number)),
        )

    def on_start(self, event: AgentStarted) -> None:
        """A warp, or a unit."""
        name = _NAME.fullmatch(event.name)
        assert name, event.name
        cta = int(name[3]), int(name[4]), int(name[5])
        if name["warp"]:
            self.tracks[event.agent] = _Track(cta, int(name["warp"]))
            return
        same = (unit for unit in self.unit_of.values() if (unit.cta, unit.name) == (cta, name[1]))
        self.unit_of[event.agent] = next(same, Unit(agent=event.agent, cta=cta, name=name["name"]))

    def on_run(self, event: Ran) -> None:
        """Time passes while a warp runs, and only then."""
        track = self.tracks[event.agent]
        track.ran(event.first, event.count, self.now)
        self.woken.pop(event.agent, None)
        self.now += event.count

    def on_wait(self, event: Waited) -> None:
        """A wait is over. The acquires since the warp's last run ended it."""
        self.tracks[event.agent].waits.append(
            Wait(
                begin=event.begin,
                end=event.end,
                what=event.what,
                cause=self.woken.pop(event.agent, None),
            )
        )

    def on_issue(self, event: Issued) -> None:
        """An operation is in flight from now on."""
        unit = self.unit_of[event.agent]
        if unit not in self.units:
            self.units.append(unit)
        self.flying[event.operation] = event, self.now

    def on_begin(self, event: Began) -> None:
        """Releases until its end are the operation's."""
        self.working.append(event)

    def on_end(self, event: Ended) -> None:
        """An operation has had its effect."""
        began = self.working.pop()
        issue, issued = self.flying.pop(event.operation)
        self.operations.append(
            Operation(
                number=event.operation,
                label=issue.label,
                unit=self.unit_of[event.agent].agent,
                issuer=issue.parent,
                issued=issued,
                done=self.now,
                ordered=began.ordered,
            )
        )

    def on_release(self, event: Release) -> None:
        """The last who releases a channel is who ends a wait for it."""
        operation = self.working[-1].operation if self.working else 0
        unit = self.unit_of.get(event.agent)
        agent = event.agent if unit is None else unit.agent
        self.released[event.channel] = Cause(agent=agent, step=self.now, operation=operation)

    def on_acquire(self, event: Acquire) -> None:
        """A warp learns what another one, or a unit, has done."""
        cause = self.released.get(event.channel)
        if cause is not None and event.agent in self.tracks:
            self.woken[event.agent] = cause
