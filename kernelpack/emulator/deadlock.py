"""A deadlock's text: what is waited for, and where; the most telling wait first.

A kernel has hundreds of warps that wait for the one that is at fault. So waits at one instruction
that are as telling become one line: the first of them, and how many more there are.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kernelpack.emulator.faults import Deadlock, brief
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.translate.translate import Code
from kernelpack.spec.counted import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Lanes that cannot go on: who they are, where they are, and what for."""

    who: str
    place: str
    instruction: str
    reason: str
    rank: int
    """0: something is missing to what came already. 1: nothing came. 2: threads wait for others."""

    def __str__(self) -> str:
        shown = f" `{brief(self.instruction)}`" if self.instruction else ""
        return f"{self.who} — {self.place}{shown}: {self.reason}"


CodeOf = Callable[[Warp], Code]
"""The code of a warp."""


def stands(code_of: CodeOf, warps: Iterable[Warp]) -> tuple[str, ...]:
    """Where the lanes of warps are; those that are alike once, the most telling first."""
    return tuple(
        map(_told, _alike(code_of, [(warp, split) for warp in warps for split in warp.splits]))
    )


def found(code_of: CodeOf, stuck: Sequence[tuple[Warp, Split]]) -> Deadlock:
    """The deadlock of these lanes; it is at the most telling wait."""
    groups = _alike(code_of, stuck)
    first = groups[0][0]
    return Deadlock(
        "\n  ".join(["no warp can go on and nothing is in flight:", *map(_told, groups)]),
        where=f"{first.who} — {first.place}",
    )


def _alike(code_of: CodeOf, stuck: Sequence[tuple[Warp, Split]]) -> list[list[Stand]]:
    """Stands at one instruction that are as telling together, the most telling first."""
    alike: dict[tuple[int, int], list[Stand]] = {}
    for warp, split in stuck:
        stand = _stand(code_of(warp), warp, split)
        alike.setdefault((stand.rank, split.pc), []).append(stand)
    return sorted(alike.values(), key=lambda group: group[0].rank)


def _stand(code: Code, warp: Warp, split: Split) -> Stand:
    instructions, at = code.entry.body.instructions, code.nodes[split.pc].first
    ended = at >= len(instructions)
    lanes = "" if split.mask is None else f" ({counted(int(split.mask.sum()), 'lane')})"
    return Stand(
        who=f"cta {warp.cta.position} warp {warp.index}{lanes}",
        place="the end" if ended else instructions[at].place,
        instruction="" if ended else instructions[at].text,
        reason=split.wait.describe() if split.wait else "runs, or polls without progress",
        rank=_rank(split),
    )


def _rank(split: Split) -> int:
    wait = split.wait
    if wait is None:
        return 1
    if wait.kind == "mbarrier":
        return 0 if wait.begun() else 1
    return 2


def _told(alike: Sequence[Stand]) -> str:
    more = len(alike) - 1
    return f"{alike[0]}" + (f"; and {counted(more, 'more wait')} there" if more else "")
