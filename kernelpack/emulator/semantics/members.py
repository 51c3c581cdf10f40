"""Collectives of a warp: which lanes take part, and when they are all here (PTX ISA 9.7.13.2).

Each lane of `shfl.sync`, `vote.sync` and the like names the lanes it wants to meet, by its member
mask. It waits until all of those that have not exited have executed the instruction with the same
qualifiers and the same mask; so lanes with different masks are groups of their own, also where they
run together, and lanes with the same mask may come from different places of the program.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.machine.lanes import Lanes, Mask, from_bits, spelled
from kernelpack.emulator.machine.warp import Split, Wait, Warp
from kernelpack.emulator.semantics.table import Form, Handler

Exchange = Callable[..., Any]
"""`(warp, lanes that take part, *values)` → results in every lane; those of others mean nothing."""


@dataclass(slots=True, eq=False)
class Meeting:
    """Lanes of one member mask that wait for each other, and what those that came have brought."""

    key: tuple[tuple[str, ...], int]
    """The instruction with its qualifiers, and the mask."""
    pc: int
    named: Mask
    here: Mask
    values: list[Lanes]
    passed: Mask
    """Lanes that ran on to where those here are yet to come."""
    absent: Mask
    """Lanes that skip this very instruction, or run it with another mask: they do not come."""
    result: Any = None
    over: bool = field(default=False)

    def missing(self, warp: Warp) -> Mask:
        """The lanes that are still to come."""
        return self.named & warp.alive & ~(self.here | self.absent | self.passed)

    def is_whole(self, warp: Warp) -> bool:
        """Whether nobody is still to come."""
        return not np.count_nonzero(self.missing(warp))

    def wait(self, warp: Warp) -> Wait:
        """The wait of its lanes."""

        def describe() -> str:
            return f"{spelled(self.missing(warp))} of its member mask {self.key[1]:#x}"

        return Wait("members", lambda: self.over or self.is_whole(warp), describe, inner=True)

    def bring(self, lanes: Mask, values: tuple[Lanes, ...]) -> None:
        """Lanes come, with their operands."""
        self.here = self.here | lanes
        for position, value in enumerate(values):
            chosen = lanes[:, None] if value.ndim > 1 else lanes
            self.values[position] = np.where(chosen, value, self.values[position])


def together(form: Form, exchange: Exchange) -> Handler:
    """A handler that waits until the lanes of its last operand, the member mask, are all here."""
    instruction = form.instruction
    qualified = (instruction.opcode, *instruction.modifiers)

    def call(warp: Warp, split: Split, mask: Mask, *values: Lanes) -> object:
        if isinstance(split.token, Meeting):
            return _over(warp, split, split.token, exchange)
        words = values[-1]
        word = int(words[mask.argmax()])
        same = not words.flags.writeable or not np.count_nonzero((words != word) & mask)
        if same and (from_bits(word) & warp.alive).tobytes() == mask.tobytes():
            return exchange(warp, mask, *values[:-1])
        groups = list(_groups(words, mask))
        if all(_is_whole(warp, *group) for group in groups):
            return _side_by_side(warp, groups, values[:-1], exchange)
        return _gather(warp, split, (qualified, mask, groups), values[:-1])

    return call


def _groups(words: Lanes, mask: Mask) -> Iterator[tuple[int, Mask]]:
    """The lanes that run the instruction, by their member mask."""
    for word in np.unique(words[mask]).tolist():
        yield int(word), mask & (words == word)


def _is_whole(warp: Warp, word: int, lanes: Mask) -> bool:
    return not np.count_nonzero(from_bits(word) & warp.alive & ~lanes)


def _side_by_side(
    warp: Warp, groups: list[tuple[int, Mask]], values: tuple[Lanes, ...], exchange: Exchange
) -> object:
    """Groups that are all here, each by itself."""
    whole: object = None
    for word, lanes in groups:
        _check_own(warp, word, lanes)
        found = exchange(warp, lanes, *values)
        whole = found if whole is None else _merged(lanes, found, whole)
    return whole


def _merged(lanes: Mask, found: Any, others: Any) -> object:  # noqa: ANN401
    """Results of some lanes put among those of others; a pair, an array, or nothing."""
    if isinstance(found, tuple):
        return tuple(np.where(lanes, *both) for both in zip(found, others, strict=True))
    return None if found is None else np.where(lanes, found, others)


def _check_own(warp: Warp, word: int, lanes: Mask) -> None:
    """A lane must be in its own mask."""
    outside = lanes & ~from_bits(word)
    if np.count_nonzero(outside):
        text = f"a lane runs this instruction and is not in its mask {word:#x}"
        warp.cta.machine.misuse(rules.MEMBER_MASK, text, lane=int(outside.argmax()))


def _gather(
    warp: Warp,
    split: Split,
    who: tuple[tuple[str, ...], Mask, list[tuple[int, Mask]]],
    values: tuple[Lanes, ...],
) -> Wait:
    """Some lanes are still to come: each group goes to its meeting, and waits there by itself.

    Lanes that the guard keeps out go on.
    """
    qualified, mask, groups = who
    skipping = split.lanes & ~mask
    for number, (word, lanes) in enumerate(groups):
        meeting = _meeting(warp, (qualified, word), split.pc, values)
        meeting.bring(lanes, values)
        meeting.absent = meeting.absent | (split.lanes & ~lanes)
        if number == 0:
            split.mask, split.token = None if lanes.all() else lanes, meeting
            first = meeting.wait(warp)
        else:
            warp.splits.append(Split(split.pc, lanes, meeting.wait(warp), meeting))
    if np.count_nonzero(skipping):
        warp.splits.append(Split(split.pc + 1, skipping, spins=split.spins))
    return first


def _meeting(
    warp: Warp, key: tuple[tuple[str, ...], int], pc: int, values: tuple[Lanes, ...]
) -> Meeting:
    """The meeting of these lanes, begun by those that come first."""
    found: Meeting | None = warp.meetings.get(key)
    if found is None:
        nobody = np.zeros(len(warp.alive), bool)
        found = warp.meetings[key] = Meeting(
            key, pc, from_bits(key[1]), nobody, list(values), nobody, nobody
        )
    return found


def _over(warp: Warp, split: Split, meeting: Meeting, exchange: Exchange) -> object:
    """Those who came have met: the first of them to go on does the exchange for all."""
    if not meeting.over:
        assert meeting.is_whole(warp)
        _check_own(warp, meeting.key[1], meeting.here)
        _check_missed(warp, meeting)
        meeting.result = exchange(warp, meeting.here, *meeting.values)
        meeting.over = True
        del warp.meetings[meeting.key]
    split.token = None
    return meeting.result


def _check_missed(warp: Warp, meeting: Meeting) -> None:
    """Lanes that exited need not come; those that did anything else in place of it had to."""
    missed = meeting.named & ~meeting.here & (meeting.absent | meeting.passed)
    if np.count_nonzero(missed):
        warp.cta.machine.misuse(
            rules.MEMBER_MASK,
            f"the member mask {meeting.key[1]:#x} names {spelled(missed)}, "
            "which go on without this instruction",
            lane=int(missed.argmax()),
        )
