"""Who polls: asks again for what has not changed since it asked last.

Only loads that synchronise, atomics that changed nothing and `mbarrier.test_wait` count. A loop
that reads the same plain word in every turn mostly computes.

A warp in one piece that polls nothing but mbarriers *dozes* until one of them answers otherwise:
its turns until then would be the same ones again (ADR 0034).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kernelpack.emulator.machine.lanes import Mask
    from kernelpack.emulator.machine.warp import Split, Warp


@dataclass(frozen=True, slots=True)
class Asked:
    """The last question of an instruction: its object, answer, and time by machine and warp.

    `acts` counts what else the warp had done; `same`: whether it would get this answer still.
    """

    what: bytes
    answer: bytes
    changes: int
    step: int
    acts: int
    same: Callable[[], bool] | None


@dataclass(frozen=True, slots=True)
class Poll:
    """A split asks again and again: at which instruction, and how long a turn of its loop is."""

    at: int
    changes: int
    step: int
    period: int


def asked(
    warp: "Warp",
    mask: "Mask | None",
    what: bytes,
    answer: bytes,
    same: Callable[[], bool] | None = None,
) -> None:
    """Lanes asked for something, and got an answer; the second time it is a poll."""
    changes = warp.cta.machine.changes
    acts = warp.acts + warp.clock_reads + (changes != warp.turn_began)
    seen = warp.asked.get(warp.at)
    warp.asked[warp.at] = Asked(what, answer, changes, warp.steps, acts, same)
    split = _split(warp, mask)
    if seen is None or (seen.what, seen.answer) != (what, answer):
        split.spins = 0
        return
    if seen.changes == changes:
        split.spins += 1
        split.poll = Poll(warp.at, changes, warp.steps, max(warp.steps - seen.step, 1))
        warp.repeats = True
    if len(warp.splits) == 1 and seen.acts == acts:
        warp.dozes_on = _questions(warp, seen.step)


def _questions(warp: "Warp", since: int) -> tuple[Callable[[], bool], ...]:
    """Whether each answer that a warp got since a step is the same still; none if one is open."""
    recent = [each.same for each in warp.asked.values() if each.step >= since]
    return tuple(same for same in recent if same is not None) if None not in recent else ()


def dozes(warp: "Warp") -> bool:
    """Whether a warp polls, and would get the answers that it got in its last turn."""
    return bool(warp.dozes_on) and all(same() for same in warp.dozes_on)


def polls(warp: "Warp", split: "Split") -> bool:
    """Whether lanes do nothing but ask, by their last two turns around."""
    poll = split.poll
    if poll is None or poll.changes != warp.cta.machine.changes:
        return False
    return warp.steps - poll.step <= 2 * poll.period


def _split(warp: "Warp", mask: "Mask | None") -> "Split":
    """The split that lanes belong to."""
    if mask is None or len(warp.splits) == 1:
        return warp.splits[0]
    first = int(np.argmax(mask))
    return next(split for split in warp.splits if split.lanes[first])
