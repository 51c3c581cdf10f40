"""Findings as they are reported: each kind at each instruction once, with who and where."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from kernelpack.emulator import rules
from kernelpack.emulator.faults import Finding, Level, Rule
from kernelpack.emulator.machine.grid import Machine
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.translate.translate import Code

_NOBODYS = Finding(
    rule=rules.RACE,
    message="",
    cta=(0, 0, 0),
    warp=None,
    lane=None,
    place="",
    instruction="",
)
"""A new finding."""


@dataclass(slots=True)
class Collector:
    """Findings, each kind of them at each instruction once, with who and where."""

    level: Level
    codes: Sequence[Code]
    """Of each launch."""
    machine: Machine
    found: dict[tuple[str, str, str], Finding] = field(default_factory=dict)
    starts: tuple[int, ...] = ()
    """The number of the first instruction of each code."""

    def __post_init__(self) -> None:
        counts = (len(code.entry.body.instructions) for code in self.codes)
        self.starts = tuple(accumulate(counts, initial=0))

    def __call__(
        self, rule: Rule, message: str, lane: int | None = None, *, once: bool = False
    ) -> None:
        """A check found something at what runs now."""
        if rule.level > self.level:
            return
        who = self._who()
        key = (rule.name, "", "") if once else (rule.name, who.place, who.instruction)
        if key in self.found:
            self.found[key] = replace(self.found[key], count=self.found[key].count + 1)
            return
        self.found[key] = replace(who, rule=rule, message=message, lane=lane)

    @property
    def sorted(self) -> tuple[Finding, ...]:
        """The findings, worst first; of one level those of a rule together, as they came."""
        order = {name: at for at, (name, *_) in reversed(list(enumerate(self.found)))}
        found = self.found.values()
        return tuple(sorted(found, key=lambda f: (f.rule.level, order[f.rule.name])))

    @property
    def at(self) -> int:
        """The instruction that runs now, of all codes in a row; -1 before anything does."""
        warp, at = self._now()
        return -1 if warp is None else self.starts[warp.cta.cluster.launch] + at

    def line(self, at: int) -> str:
        """The place of an instruction."""
        if not 0 <= at < self.starts[-1]:
            return "(nowhere)"
        launch = bisect_right(self.starts, at) - 1
        body = self.codes[launch].entry.body
        return body.instructions[at - self.starts[launch]].place

    def _now(self) -> tuple[Warp | None, int]:
        """The warp that runs, or issued what does, and the instruction in its code."""
        running, warp = self.machine.engine.running, self.machine.current
        if running is not None:
            return running.warp, running.at
        return warp, warp.at if warp else -1

    @property
    def step(self) -> int:
        """The clock of the machine."""
        return self.machine.step

    def _who(self) -> Finding:
        """A finding at what runs now."""
        warp, at = self._now()
        if warp is None:
            return _NOBODYS
        entry = self.codes[warp.cta.cluster.launch].entry
        if not entry.body.instructions:
            return _NOBODYS
        instruction = entry.body.instructions[min(at, len(entry.body.instructions) - 1)]
        return replace(
            _NOBODYS,
            cta=warp.cta.position,
            warp=warp.index,
            place=instruction.place,
            instruction=instruction.text,
            launch=warp.cta.cluster.launch,
        )
