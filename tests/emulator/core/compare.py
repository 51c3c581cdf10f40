"""A launch on both engines: the first event, or the first byte, in which they differ."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b

import numpy as np

from kernelpack.emulator import events as e
from kernelpack.emulator.checks import ALL
from kernelpack.emulator.collector import Collector
from kernelpack.emulator.core import attempt
from kernelpack.emulator.core.library import Ran
from kernelpack.emulator.events import Bus
from kernelpack.emulator.faults import EmulationError, Level
from kernelpack.emulator.machine.bad_access import reporter
from kernelpack.emulator.machine.grid import Machine
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.models import mma
from kernelpack.emulator.prepare import Dependent, place_variables, prepare
from kernelpack.emulator.run import STEP_LIMIT
from kernelpack.emulator.runner import Runner
from kernelpack.emulator.schedule import Schedule

NAMES = (
    "", "started", "release", "acquire", "fenced", "arrived", "met", "tensor fence", "proxy fence",
    "issued", "began", "ended", "access", "swizzled", "reached", "exited", "ran",
)  # fmt: skip
_KINDS = {"shared": 0, "global": 1, "tensor": 2, "pair-use": 3, "pair-alloc": 4}
_PROXIES = {"generic": 0, "async": 1, "tensor": 2}
_USES = {"": 0, "init": 1, "use": 2, "inval": 3}
_CHANNELS = dict(zip(
    ("word", "mbarrier", "bar", "cluster", "operation", "grid", "tcgen05.ld", "tcgen05.st",
     "tcgen05.alloc", "tcgen05.dealloc"), range(10), strict=True,
))  # fmt: skip
_OTHER = 10
_CHUNK = 1 << 16
"""Words of the core's log that become Python's integers at a time."""


class Log:
    """Listens to everything, beside the core's log (bus.cpp): keeps the first that differs."""

    def __init__(self, log: np.ndarray) -> None:
        self.core = records(log)
        self.count = 0
        self.before: deque = deque(maxlen=4)
        self.difference = ""

    def listen(self, bus: Bus) -> None:
        """Hear of every kind of event."""
        for kind, words in (
            (e.AgentStarted, lambda v: (1, v.agent, v.is_warp, v.cta, v.is_alone)),
            (e.Release, self._release), (e.Acquire, self._acquire),
            (e.Fenced, lambda v: (4, v.agent, v.scope, v.acquires, v.releases)),
            (e.Arrived, lambda v: (5, v.agent, v.barrier, v.phase, v.waits)),
            (e.LanesMet, lambda v: (6, v.agent, _mask(v.lanes), v.lanes is None)),
            (e.TensorFence, lambda v: (7, v.agent, v.is_before)),
            (e.ProxyFence, lambda v: (8, v.agent, "shared" in v.kinds, "global" in v.kinds,
                                      _mask(v.lanes))),
            (e.Issued, lambda v: (9, v.operation, v.parent, v.agent,
                                  -1 if v.stage is None else v.stage.pipe)),
            (e.Began, lambda v: (10, v.operation, v.agent, v.ordered)),
            (e.Ended, lambda v: (11, v.operation, v.agent)),
            (e.Access, self._access), (e.Swizzled, self._swizzled),
            (e.Reached, lambda v: (14, v.agent, v.cta)),
            (e.Exited, lambda v: (15, v.cta, len(v.agents))),
            (e.Ran, lambda v: (16, v.agent, v.first, v.count)),
        ):  # fmt: skip
            bus.listen(kind, self._noter(words))

    def _noter(self, words):
        def note(event):
            if not self.difference:
                self._compare(tuple(words(event)), event)

        return note

    def _compare(self, theirs, event) -> None:
        ours = next(self.core, None)
        if ours is None:
            what = f"the core has no more; python {theirs} {_told(event)}"
            self.difference = f"event {self.count}: {what}"
        elif not same(ours, theirs):
            before = "\n".join(f"   {_told(one)}" for one in self.before)
            self.difference = (
                f"event {self.count} ({NAMES[ours[0]]}):\n{before}\n   core {ours}\n"
                f"   python {theirs}\n   {_told(event)}"
            )
        self.before.append(event)
        self.count += 1

    def end(self) -> str:
        """The first event that differs, in words; empty where there is none."""
        if self.difference:
            return self.difference
        more = next(self.core, None)
        return f"the core has more events: {more}" if more else ""

    def _unit(self, unit):
        return _KINDS[unit.kind], unit.name

    def _release(self, v):
        return (2, v.agent, *self._channel(v.channel), v.relaxed, v.scope, v.tolerated, _mask(v.by))

    def _acquire(self, v):
        return (
            3, v.agent, *self._channel(v.channel), _mask(v.lanes), v.relaxed, v.scope, _mask(v.by)
        )  # fmt: skip

    def _channel(self, channel):
        kind = _CHANNELS.get(channel[0], _OTHER)
        if kind == 0:
            return kind, channel[2]
        if kind == 3:
            return kind, channel[2]
        return (kind, *channel[1:]) if kind != _OTHER else (kind,)

    def _access(self, v):
        return (
            12, *self._unit(v.unit), v.agent, v.write, _PROXIES[v.proxy], v.atomic,
            _USES[v.mbarrier], len(v.cells), _sum(v.cells, v.bytes_mask),
        )  # fmt: skip

    def _swizzled(self, v):
        return 13, *self._unit(v.unit), v.write, len(v.cells), _sum(v.cells, 15)


def _mask(lanes) -> int:
    if lanes is None:
        return 0xFFFF_FFFF
    return int(sum(1 << int(lane) for lane in np.flatnonzero(lanes)))


def _told(event) -> str:
    return repr(event)[:300]


def _sum(cells, masks) -> int:
    """What the core makes of the cells of an access: each counts by its place."""
    words = np.asarray(cells).astype(np.uint64).ravel() * np.uint64(16)
    words += np.asarray(masks).astype(np.uint64)
    return int((words * _powers(len(words))).sum()) >> 1


@cache
def _powers(count: int) -> np.ndarray:
    """31 to the power of how many come after, modulo 2^64."""
    if not count:
        return np.empty(0, np.uint64)
    factors = np.full(count, 31, np.uint64)
    factors[0] = 1
    return np.multiply.accumulate(factors)[::-1].copy()


@dataclass
class Python:
    """What the Python engine did."""

    findings: tuple
    error: Exception | None
    steps: int
    operations: int
    bytes: np.ndarray


def on_python(
    first: Dependent,
    memory,
    schedule: Schedule,
    *,
    log: Log | None = None,
    level=Level.WARN,
    watched=True,
    step_limit=STEP_LIMIT,
):
    """Run a launch on the Python engine, with a log or without."""
    bus = Bus()
    on_bad = reporter(bus)
    ((launched, code),) = prepare([first], memory, schedule, on_bad)
    machine = Machine(
        [launched], memory, bus, on_bad=on_bad, multiply=mma.fast, tempo=schedule.tempo,
        seed=schedule.seed,
    )  # fmt: skip
    collector = Collector(level, [code], machine)
    if log:
        log.listen(bus)
    for check in ALL if watched else ():
        if getattr(check, "level", Level.ERROR) <= level:
            check(collector).listen(bus)
    error = None
    try:
        Runner(machine, [code], schedule, step_limit=step_limit).run()
    except EmulationError as fault:
        error = fault
    return Python(collector.sorted, error, machine.step, machine.engine.count, memory.bytes.copy())


def on_core(first: Dependent, memory, schedule: Schedule, *, logged=True, step_limit=STEP_LIMIT):
    """Run a launch on the core with its log."""
    ((launched, code),) = prepare([first], memory, schedule, reporter(Bus()))
    return attempt.attempt(launched, code, memory, schedule, step_limit=step_limit, logged=logged)


def records(log: np.ndarray) -> Iterator[tuple[int, ...]]:
    """The core's log as tuples."""
    start = 0
    while start < len(log):
        words, at = log[start : start + _CHUNK].tolist(), 0
        while at + 1 < len(words) and at + 2 + words[at + 1] <= len(words):
            end = at + 2 + words[at + 1]
            yield words[at], *words[at + 2 : end]
            at = end
        start += at


def same(ours: tuple, theirs: tuple) -> bool:
    """Whether a record of the core is that of Python, in what both can name."""
    if ours[0] != theirs[0]:
        return False
    kind = ours[0]
    if kind in (2, 3):  # the channel: kind, then as many words as Python has
        mine, python = _channel_of(ours, core=True), _channel_of(theirs, core=False)
        return ours[1] == theirs[1] and mine == python
    if kind in (12, 13):  # the unit's CTA stands in its name
        return ours[1] == theirs[1] and ours[3:] == tuple(map(int, theirs[3:]))
    if kind == 15:
        return ours[2] == theirs[2]
    return ours[1:] == tuple(map(int, theirs[1:]))


def _channel_of(record, *, core):
    kind = record[2]
    tail = 4
    if core:
        a, b, c = record[3:6]
        words = {
            0: (b,),
            1: (a, b, c),
            2: (a, b, c),
            3: (b,),
            4: (a,),
            5: (a,),
            6: (a,),
            7: (a,),
            8: (a,),
            9: (a,),
        }
        return kind, words.get(kind, ()), tuple(map(int, record[-tail:]))
    return kind, tuple(map(int, record[3:-tail])), tuple(map(int, record[-tail:]))


def _first_difference(log: Log, python: Python, ran, memory) -> str:
    """In words; empty where there is none."""
    if what := log.end():
        return what
    if (ran.steps, ran.operations) != (python.steps, python.operations):
        return f"steps {ran.steps} {python.steps}, operations {ran.operations} {python.operations}"
    differs = np.flatnonzero(memory.bytes != python.bytes)
    return f"{len(differs)} bytes, first at {differs[0]}" if len(differs) else ""


def copied(memory: GlobalMemory) -> GlobalMemory:
    """The same memory, apart."""
    made = GlobalMemory(memory.size)
    made.bytes[:], made.state[:] = memory.bytes, memory.state
    made.end, made.allocations = memory.end, dict(memory.allocations)
    return made


@dataclass
class Both:
    """A launch on both engines.

    Attributes:
        difference: how they differ; empty where they do not.
        doubt: why the core gave it up; empty where it ran to its end.
        spoilt: whether the core left memory otherwise than it was before a doubt.
        python: what Python did.
        events: of Python, in number.
        digest: of what the core did.

    """

    difference: str
    doubt: str
    spoilt: str
    python: Python
    events: int
    digest: str


def difference(first: Dependent, memory: GlobalMemory, schedule: str, seed: int = 0) -> str:
    """Run a launch on both engines; how they differ, empty where they do not."""
    return both(first, memory, Schedule.parse(schedule, seed)).difference


def both(
    first: Dependent, memory: GlobalMemory, schedule: Schedule, step_limit: int = STEP_LIMIT
) -> Both:
    """Run a launch on both engines.

    A doubt is a difference where Python has nothing to remark, and there is none where Python has.
    """
    other = copied(memory)
    ran = on_core(first, other, schedule, step_limit=step_limit)
    log = Log(np.empty(0, np.int64) if isinstance(ran, str) else ran.log)
    spoilt = spoils(ran, other, first, memory)
    python = on_python(first, memory, schedule, log=log, step_limit=step_limit)
    doubt = ran if isinstance(ran, str) else ran.doubt
    differs = spoilt or _judged(log, python, ran, other)
    return Both(differs, doubt, spoilt, python, log.count, digest(ran, other))


def spoils(ran: Ran | str, after: GlobalMemory, first: Dependent, memory: GlobalMemory) -> str:
    """How a doubt leaves memory otherwise than it was; empty where it does not."""
    if isinstance(ran, str) or not ran.doubt:
        return ""
    before = copied(memory)
    if first.addresses is None:
        place_variables(first.program, before)
    is_same = (after.bytes == before.bytes).all() and (after.state == before.state).all()
    return "" if is_same else "memory is not as it was before the doubt"


def digest(ran: Ran | str, memory: GlobalMemory) -> str:
    """What the core said, if it ran to the end: `memory` is as it left it."""
    if isinstance(ran, str) or ran.doubt:
        return ""
    told = blake2b(ran.log.tobytes(), digest_size=16)
    told.update(repr((ran.steps, ran.operations)).encode())
    told.update(memory.bytes.tobytes())
    return told.hexdigest()


def _judged(log: Log, python: Python, ran, memory: GlobalMemory) -> str:
    if isinstance(ran, str):
        return f"the core does not run it: {ran}"
    if python.error or python.findings:
        found = python.error or python.findings[0]
        return "" if ran.doubt else f"missed: {found}"
    what = _first_difference(log, python, ran, memory)
    return f"doubt: {ran.doubt}; then {what}" if ran.doubt else what
