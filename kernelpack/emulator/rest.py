"""Which warps are at rest: nothing comes of them until something else in the grid changes.

A warp is at rest when all its lanes wait or poll, or when it goes in circles: it is again where
it was, with the same registers, and no memory has changed in between. That last is certain, for a
warp does the same again from the same state; of one that polls it is not, for it may count its
turns and give up. Nor is it of one that reads a clock in each of its turns: it waits for a time.
"""

from dataclasses import dataclass, field
from itertools import compress
from operator import is_not
from typing import Any

import numpy as np

from kernelpack.emulator.machine.grid import Machine
from kernelpack.emulator.machine.polls import polls
from kernelpack.emulator.machine.warp import Warp

_TIMED_TURNS = 8
"""Turns in each of which a warp read a clock after which it is taken to wait for a time."""
_LOCAL_KEPT = 1 << 16
"""Bytes of a warp's local memory that are compared; with more it never seems to go in circles."""


@dataclass(slots=True, eq=False)
class _Seen:
    """Where a warp was, and for how many looks that is kept: twice as many each time (Brent)."""

    changes: int
    steps: int
    stand: tuple[Any, ...]
    registers: list[Any]
    kept: int = 1
    looks: int = 0
    is_circle: bool = field(default=False)


class Rest:
    """Looks at the warps of a machine between their turns."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.seen: dict[int, _Seen] = {}
        """Agent of a warp → where it was."""
        self.presumed: set[int] = set()
        """Agents of warps that went on so long without a change that they are taken to poll."""
        self.timed: dict[int, tuple[int, int, int]] = {}
        """Agent → changes of the machine, clocks that it had read, its turns with one since."""

    def look(self, warp: Warp) -> bool:
        """Look at a warp after a round in which nothing changed; whether it is at rest."""
        if warp.dozes_on:
            return True
        changes, seen = self.machine.changes, self.seen.get(warp.agent)
        is_watched = seen is not None and seen.changes == changes
        if warp.asleep_at == changes and not is_watched:
            return True
        if self.watch(warp) or _stands(warp):
            self.presumed.discard(warp.agent)
            return True
        return self.waits_for_a_time(warp) or warp.agent in self.presumed

    def waits_for_a_time(self, warp: Warp) -> bool:
        """Whether a warp does, by its turns since the last change; asked in each."""
        now = self.machine.changes
        changes, reads, turns = self.timed.get(warp.agent, (now, warp.clock_reads, 0))
        turns = turns + 1 if changes == now and warp.clock_reads > reads else 0
        self.timed[warp.agent] = now, warp.clock_reads, turns
        return turns >= _TIMED_TURNS

    def is_certain(self, warp: Warp) -> bool:
        """Whether a warp that is at rest will be for ever, if nothing else changes."""
        seen = self.seen.get(warp.agent)
        if seen is not None and seen.changes == self.machine.changes and seen.is_circle:
            return True
        waits = [split.wait for split in warp.splits]
        return all(wait is not None and not wait.spurious for wait in waits)

    def presume(self, warps: list[Warp]) -> None:
        """Take warps to poll until they do something that others can see, or wait."""
        self.presumed |= {warp.agent for warp in warps}

    def forget(self, warp: Warp) -> None:
        """A warp changed something, or ended."""
        self.presumed.discard(warp.agent)
        self.seen.pop(warp.agent, None)
        self.timed.pop(warp.agent, None)

    def watch(self, warp: Warp) -> bool:
        """Whether a warp is where it was before, ran since, and nothing has changed."""
        changes, seen = self.machine.changes, self.seen.get(warp.agent)
        if seen is None or seen.changes != changes:
            self.seen[warp.agent] = _seen(warp, changes, kept=1)
            return False
        if seen.is_circle or seen.steps == warp.steps:
            return seen.is_circle
        seen.steps = warp.steps
        if _stand(warp) == seen.stand and _equal(seen.registers, warp.registers):
            seen.is_circle = len(warp.local.bytes) <= _LOCAL_KEPT
            return seen.is_circle
        seen.looks += 1
        if seen.looks == seen.kept:
            self.seen[warp.agent] = _seen(warp, changes, kept=2 * seen.kept)
        return False


def _seen(warp: Warp, changes: int, *, kept: int) -> _Seen:
    return _Seen(changes, warp.steps, _stand(warp), list(warp.registers), kept)


def _stands(warp: Warp) -> bool:
    """Whether every lane of a warp waits or polls."""
    return all(
        not split.wait.ready() if split.wait is not None else polls(warp, split)
        for split in warp.splits
    )


def _stand(warp: Warp) -> tuple[Any, ...]:
    """All of a warp that decides what it does next, but for its registers."""
    least = min((split.spins for split in warp.splits), default=0)
    splits = [
        (s.pc, s.lanes.tobytes(), s.wait is None, id(s.token), s.spins - least) for s in warp.splits
    ]
    local = warp.local.bytes
    return (
        splits,
        warp.stack.depths,
        warp.clock_reads,
        local.tobytes() if len(local) <= _LOCAL_KEPT else b"",
    )


def _equal(a: list[Any], b: list[Any]) -> bool:
    """Whether two register files hold the same; most registers are the same arrays."""
    others = compress(zip(a, b, strict=True), map(is_not, a, b))
    return all(np.array_equal(x, y) for x, y in others)
