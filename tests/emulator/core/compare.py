"""A launch on both engines: the first event, or the first byte, in which they differ."""

from dataclasses import dataclass

import numpy as np

from kernelpack.emulator import events as e
from kernelpack.emulator.checks import ALL
from kernelpack.emulator.collector import Collector
from kernelpack.emulator.core import attempt
from kernelpack.emulator.events import Bus
from kernelpack.emulator.faults import EmulationError, Level
from kernelpack.emulator.machine.bad_access import reporter
from kernelpack.emulator.machine.grid import Machine
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.models import mma
from kernelpack.emulator.prepare import Dependent, prepare
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
_ONES = (1 << 64) - 1


class Log:
    """Listens to everything; the records are those of the core's log (bus.cpp)."""

    def __init__(self) -> None:
        self.records: list[tuple[int, ...]] = []
        self.units: dict[e.Unit, int] = {}
        self.what: list[str] = []

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
            self.records.append(tuple(words(event)))
            self.what.append(repr(event)[:300])

        return note

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


def _sum(cells, masks) -> int:
    total = 0
    each = np.broadcast_to(np.asarray(masks), np.asarray(cells).shape).tolist()
    for cell, mask in zip(np.asarray(cells).tolist(), each, strict=True):
        total = (total * 31 + cell * 16 + mask) & _ONES
    return total >> 1


@dataclass
class Python:
    """What the Python engine did."""

    records: list
    what: list
    findings: tuple
    error: Exception | None
    steps: int
    operations: int
    bytes: np.ndarray


def on_python(first: Dependent, memory, schedule: Schedule, *, level=Level.WARN, watched=True):
    """Run a launch on the Python engine with a log."""
    bus = Bus()
    on_bad = reporter(bus)
    ((launched, code),) = prepare([first], memory, schedule, on_bad)
    machine = Machine(
        [launched], memory, bus, on_bad=on_bad, multiply=mma.fast, tempo=schedule.tempo,
        seed=schedule.seed,
    )  # fmt: skip
    collector, log = Collector(level, [code], machine), Log()
    log.listen(bus)
    for check in ALL if watched else ():
        if getattr(check, "level", Level.ERROR) <= level:
            check(collector).listen(bus)
    error = None
    try:
        Runner(machine, [code], schedule, step_limit=STEP_LIMIT).run()
    except EmulationError as fault:
        error = fault
    return Python(
        log.records, log.what, collector.sorted, error, machine.step, machine.engine.count,
        memory.bytes.copy(),
    )  # fmt: skip


def on_core(first: Dependent, memory, schedule: Schedule, *, logged=True):
    """Run a launch on the core with its log."""
    ((launched, code),) = prepare([first], memory, schedule, reporter(Bus()))
    return attempt.attempt(launched, code, memory, schedule, step_limit=STEP_LIMIT, logged=logged)


def records(log) -> list[tuple[int, ...]]:
    """The core's log as tuples."""
    found, words = [], log.tolist()
    at = 0
    while at < len(words):
        kind, count = words[at], words[at + 1]
        found.append((kind, *words[at + 2 : at + 2 + count]))
        at += 2 + count
    return found


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


def first_difference(python: Python, ran, memory) -> str:
    """In words; empty where there is none."""
    ours = records(ran.log)
    for at, theirs in enumerate(python.records):
        if at >= len(ours):
            return f"event {at}: the core has no more; python {theirs} {python.what[at]}"
        if not same(ours[at], theirs):
            before = "\n".join(f"   {w}" for w in python.what[max(at - 4, 0) : at])
            return (
                f"event {at} ({NAMES[ours[at][0]]}):\n{before}\n   core {ours[at]}\n"
                f"   python {theirs}\n   {python.what[at]}"
            )
    if len(ours) > len(python.records):
        return f"the core has more events: {ours[len(python.records)]}"
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


def difference(first: Dependent, memory: GlobalMemory, schedule: str, seed: int = 0) -> str:
    """Run a launch on both engines; how they differ, empty where they do not.

    A doubt is a difference where Python has nothing to remark, and there is none where Python has.
    """
    chosen = Schedule.parse(schedule, seed)
    other = copied(memory)
    python = on_python(first, memory, chosen)
    ran = on_core(first, other, chosen)
    if isinstance(ran, str):
        return f"the core does not run it: {ran}"
    is_clean = python.error is None and not python.findings
    if not is_clean:
        found = python.error or python.findings[0]
        return "" if ran.doubt else f"missed: {found}"
    what = first_difference(python, ran, other)
    if ran.doubt:
        return f"doubt: {ran.doubt}; then {what}"
    return what
