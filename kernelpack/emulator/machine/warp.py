"""A warp: 32 lanes of registers, and the groups of lanes that are at different places.

Divergence: a *split* is a set of lanes at one pc. The split with the lowest pc runs first, and
splits that meet at a pc become one again. A split that cannot go on holds a *wait*, which says
when it can and, in words, what for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.machine.frames import Key, Stack
from kernelpack.emulator.machine.lanes import EVERY, LANE_IDS, WIDTH, Lanes, Mask, poison, spelled
from kernelpack.emulator.machine.memory import Memory
from kernelpack.emulator.machine.polls import Asked, Poll
from kernelpack.emulator.machine.special import special_register
from kernelpack.emulator.machine.units import Units

if TYPE_CHECKING:
    from kernelpack.emulator.machine.cluster import Cta

LOCAL_LIMIT_BYTES = 512 * 1024
"""Local memory of a thread (PTX: 512 KB)."""
NEVER = -1
"""No count of changes of a machine."""
NOT_ARRIVED = -1
"""No generation of the cluster barrier."""


_TIMES = frozenset(
    ("clock", "clock64", "clock_hi", "globaltimer", "globaltimer_lo", "globaltimer_hi")
)
"""Special registers that are another number whenever they are read."""


class Answer(Enum):
    """The next action of an instruction that is tried again."""

    NOT_YET = "answer that it is not complete, though it could wait"


@dataclass(slots=True, eq=False)
class Wait:
    """Why a split stands still.

    `spurious`: the instruction may also answer "not yet". `begun`: part of what it waits for came.
    `inner`: it waits for other lanes of its warp, and for nothing else.
    """

    kind: str
    ready: Callable[[], bool]
    describe: Callable[[], str]
    spurious: bool = False
    begun: Callable[[], bool] = lambda: False
    inner: bool = False


@dataclass(slots=True, eq=False)
class Split:
    """Lanes that run together. `mask` is None when they are all 32 lanes of the warp."""

    pc: int
    mask: Mask | None
    wait: Wait | None = None
    token: Any = None
    """The state of an instruction between its first try and its completion."""
    spins: int = 0
    """Polls without progress; a spinning split lets the others go first."""
    poll: Poll | None = None
    """The last thing that it asked for twice."""
    waited_for: tuple[int, str] | None = None
    """The step at which it began to wait, and for what; kept only where somebody listens."""

    @property
    def lanes(self) -> Mask:
        """The mask, never None."""
        return EVERY if self.mask is None else self.mask


@dataclass(slots=True, eq=False)
class Landing:
    """A block of registers that an asynchronous instruction will fill when it takes effect."""

    finish: Callable[[], None]
    early: Callable[[], None]
    """Called when a register is touched before the instruction was waited for."""


@dataclass(slots=True, eq=False)
class Warp:
    """Warp `index` of a CTA. `agent` is its number in events."""

    cta: "Cta"
    index: int
    agent: int
    registers: list[Lanes]
    alive: Mask
    threads: Lanes
    """Linear thread index in the CTA of each lane."""
    local: Memory
    local_bytes: int
    splits: list[Split] = field(default_factory=list)
    asleep_at: int = NEVER
    """The machine's count of changes at which no split could go on; none can until it grows."""
    waits_on: tuple[Callable[[], bool], ...] | None = None
    """Of one that cannot go on: whether each thing outside it came, one of which must."""
    steps: int = 0
    at: int = 0
    """The instruction being run, as an index into the entry's body."""
    inflight: dict[int, Landing] = field(default_factory=dict)
    """id of a block, whose rows are registers → what will fill it."""
    arguments: dict[tuple[str, int], Lanes] = field(default_factory=dict)
    """`.param` space of a call: (name, byte offset) → value."""
    stack: Stack = field(default_factory=Stack)
    """Its calls."""
    units: Units = field(default_factory=Units)
    """State of hardware units for this warp: bulk groups, cluster barrier phase, …"""
    specials: dict[str, Lanes] = field(default_factory=dict)
    clock_reads: int = 0
    acts: int = 0
    """Loads that do not synchronise, and turns in which it changed something."""
    turn_began: int = NEVER
    """The machine's count of changes when its turn began."""
    asked: dict[int, Asked] = field(default_factory=dict)
    """An instruction that polls may use → what it asked last."""
    repeats: bool = False
    """Whether it has just asked for the same thing again."""
    dozes_on: tuple[Callable[[], bool], ...] = ()
    """Of one that polled in its last turn: whether each answer is the same still."""
    meetings: dict[Any, Any] = field(default_factory=dict)
    """Collectives whose members are still to come, by what they have in common."""
    apart: dict[int, Mask] = field(default_factory=dict)
    """A pc at which lanes wait for all others → those that went on past it for good."""
    arrivals: Lanes = field(default_factory=lambda: np.full(WIDTH, NOT_ARRIVED))
    """Per lane the generation of the cluster barrier that it arrived at and has not waited for."""

    def special(self, name: str) -> Lanes:
        """The value of special register `%name`, one per lane."""
        found = self.specials.get(name)
        if found is None:
            found = special_register(self, name)
            if name in _TIMES:
                self.clock_reads += 1
            else:
                self.specials[name] = found
        return found

    def hand(self, key: Key, value: Lanes, mask: Mask | None) -> None:
        """Set a parameter of a call, for some lanes."""
        before = self.arguments.get(key)
        if mask is None or before is None or before.dtype != value.dtype:
            self.arguments[key] = value
        else:
            self.arguments[key] = np.where(mask, value, before)

    def land(self, *registers: Lanes) -> None:
        """Registers are about to be used: let what fills them take effect first."""
        for register in registers:
            landing = self.inflight.get(id(register.base))
            if landing is not None:
                landing.early()
                landing.finish()

    def merge(self) -> None:
        """Join splits that are at the same pc and have nothing pending."""
        met: dict[int, Split] = {}
        kept: list[Split] = []
        for split in self.splits:
            other = met.get(split.pc)
            if other is None or other.token is not None or split.token is not None:
                met.setdefault(split.pc, split)
                kept.append(split)
                continue
            mask = other.lanes | split.lanes
            other.mask = None if mask.all() else mask
            other.wait = None
        if len(kept) != len(self.splits):
            self.splits[:] = kept

    def pick(self) -> Split | None:
        """The split to run: able to go on, not spinning if possible, lowest pc first."""
        splits = self.splits
        if len(splits) > 1 and len({split.pc for split in splits}) < len(splits):
            self.merge()
        able = [split for split in splits if split.wait is None or split.wait.ready()]
        if not able:
            return None
        chosen = able[0] if len(able) == 1 else min(able, key=lambda s: (s.spins, s.pc))
        chosen.wait = None
        return chosen

    def stop(self) -> None:
        """No split can go on. None of its lanes can end another's wait."""
        waits = (split.wait for split in self.splits)
        self.waits_on = tuple(wait.ready for wait in waits if wait and not wait.inner)
        self.asleep_at = self.cta.machine.changes

    def stands(self) -> bool:
        """Whether one that could not go on cannot yet; it then is as after another turn."""
        if self.waits_on is None:
            return False
        for ready in self.waits_on:
            if ready():
                return False
        machine = self.cta.machine
        machine.current, self.asleep_at = self, machine.changes
        if len(self.splits) > 1:
            self.repeats, self.dozes_on, self.turn_began = False, (), machine.changes
        return True

    def converged(self, split: Split) -> bool:
        """Whether the split is every lane of the warp that has not exited, and may still come."""
        if len(self.splits) == 1 or split.lanes.tobytes() == self.alive.tobytes():
            return True
        passed = self.apart.get(split.pc)
        return passed is not None and not np.count_nonzero(self.alive & ~(split.lanes | passed))

    def leave(self, split: Split, lanes: Mask) -> None:
        """Lanes of a split exit; the others, if any, go on after the exit."""
        self.alive = self.alive & ~lanes
        cluster, count = self.cta.cluster, int(lanes.sum())
        arrived = lanes & (self.arrivals == cluster.generation)
        cluster.leave(count, int(arrived.sum()))
        self.cta.leave(count)
        rest = split.lanes & ~lanes
        if rest.any():
            split.mask = rest
            split.pc += 1
        else:
            self.splits.remove(split)


def apart(warp: Warp, split: Split) -> Wait:
    """A wait of lanes at an instruction that the whole warp runs together."""
    warp.apart.setdefault(split.pc, np.zeros(WIDTH, bool))

    def describe() -> str:
        return f"{spelled(warp.alive & ~split.lanes)} of its warp"

    return Wait("converge", lambda: warp.converged(split), describe, inner=True)


def met(warp: Warp, split: Split, what: str, section: str) -> None:
    """Lanes run an instruction of the whole warp, for which some of them had to wait."""
    passed = warp.apart.pop(split.pc, None)
    missed = None if passed is None else passed & ~split.lanes
    if missed is not None and np.count_nonzero(missed):
        warp.cta.machine.misuse(
            rules.DIVERGENT[section],
            f"{what} is for the whole warp; {spelled(missed)} go on without it",
            lane=int(missed.argmax()),
        )


def blank_registers(widths: list[int]) -> list[Lanes]:
    """Registers of these widths that were never written."""
    fresh = {bits: poison(bits) for bits in set(widths)}
    return [fresh[bits] for bits in widths]


def new_warp(cta: "Cta", index: int, agent: int, registers: list[Lanes], local_bytes: int) -> Warp:
    """Warp `index` at pc 0; lanes past the block's size are not alive."""
    count = cta.launched.shape.threads
    threads = np.minimum(index * WIDTH + LANE_IDS, count - 1)
    alive = index * WIDTH + LANE_IDS < count
    on_bad = cta.machine.on_bad
    local = Memory(WIDTH * local_bytes + 16, name="local", kind="local", on_bad=on_bad)
    if local_bytes:
        local.open(0, WIDTH * local_bytes)
    warp = Warp(cta, index, agent, registers, alive, threads, local, local_bytes)
    warp.splits.append(Split(0, None if alive.all() else alive.copy()))
    return warp
