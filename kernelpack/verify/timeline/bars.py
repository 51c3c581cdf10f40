"""The bars of a timeline: what lasted, from when to when, and what it is called.

All that a unit had in flight at one time is one bar: the operations of a pipe that were done
together, the copies that fill one stage.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kernelpack.emulator.trace import Operation, Wait
from kernelpack.verify.timeline.ticks import STEPS, Ticks

POLL_STEPS = 8
"""Waits for one thing with no more than this between them are one wait: a poll that goes on."""


class Kind(StrEnum):
    """The kind of a bar, in the words of the legend."""

    RUN = "warp runs"
    MBARRIER = "waits for an mbarrier"
    MEET = "waits for other warps"
    MULTIPLY = "MMA in flight"
    COMMIT = "commit alone"
    LOAD = "copy to shared memory"
    STORE = "copy to global memory"
    REMOTE = "store to another CTA"
    TENSOR = "tensor memory access"
    OTHER = "other operation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Something that lasted from tick `begin` to tick `end`. `details` are for a closer look."""

    begin: int
    end: int
    kind: Kind
    name: str
    details: tuple[tuple[str, str], ...] = ()


Batch = tuple[Operation, ...]
"""Operations of one unit that are drawn as one bar, in order of issue."""

_KINDS = (
    (r"tcgen05\.mma|wgmma\.", Kind.MULTIPLY),
    (r"tcgen05\.commit", Kind.COMMIT),
    (r"tcgen05\.", Kind.TENSOR),
    (r"(st|red)\.async", Kind.REMOTE),
    (r"cp\.(reduce\.)?async\.bulk\..*?global\.shared", Kind.STORE),
    (r"cp\.(reduce\.)?async", Kind.LOAD),
)
_GUARD = re.compile(r"@!?\S+\s+")
_MBARRIER = re.compile(r"mbarrier (0x[0-9a-f]+) .*?: phase (\d+),")
_FORM_WORDS = {"sync", "aligned", "weak", "relaxed", "global", "shared", "sp"}


def kind_of(label: str) -> Kind:
    """The kind of an operation, from its instruction."""
    text = _GUARD.sub("", label, count=1)
    return next((kind for pattern, kind in _KINDS if re.match(pattern, text)), Kind.OTHER)


def short(label: str) -> str:
    """An instruction without its guard, its operands and the finer points of its form.

    >>> short("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd2, %rd3, %r4, %p5")
    'tcgen05.mma'
    """
    words = []
    for word in _GUARD.sub("", label, count=1).split(maxsplit=1)[0].split("."):
        if "::" in word or word in _FORM_WORDS:
            break
        words.append(word)
    return ".".join(words)


def wait_bar(wait: Wait, place: str) -> Bar:
    """A wait: for an mbarrier by address and phase, or for other warps."""
    found = _MBARRIER.match(wait.what)
    name = f"{found[1]} phase {found[2]}" if found else wait.what.partition(":")[0]
    return Bar(
        begin=wait.begin,
        end=wait.end,
        kind=Kind.MBARRIER if wait.what.startswith("mbarrier") else Kind.MEET,
        name=name,
        details=(("for", wait.what), ("at", place)),
    )


def without_polls(bars: Iterable[Bar]) -> tuple[Bar, ...]:
    """Join waits for the same thing that nothing but a poll interrupted."""
    joined: list[Bar] = []
    for bar in bars:
        last = joined[-1] if joined else None
        if last and last.name == bar.name and bar.begin - last.end <= POLL_STEPS:
            joined[-1] = replace(last, end=bar.end)
        else:
            joined.append(bar)
    return tuple(joined)


def beside(bar: Bar, runs: Sequence[Bar]) -> Bar | None:
    """A wait without what lies in a run of other lanes of its warp; None where all of it does.

    Runs are in order. Those that lie in the wait as a whole do not matter: a poll runs, too.
    """
    begins = [run.begin for run in runs]
    first, last = bisect_right(begins, bar.begin) - 1, bisect_left(begins, bar.end) - 1
    begin, end = bar.begin, bar.end
    if first >= 0:
        begin = max(begin, runs[first].end)
    if last > first and runs[last].end > end:
        end = runs[last].begin
    return replace(bar, begin=begin, end=end) if begin < end else None


def batches(operations: Sequence[Operation], ticks: Ticks = STEPS) -> Iterator[tuple[Bar, Batch]]:
    """The bars of one unit, from its operations in order of issue."""
    free = 0
    for batch in _grouped(operations):
        begin, end = batch[0].issued, max(operation.done for operation in batch)
        if batch[0].ordered:
            begin = min(max(begin, free), end)
        yield _batch_bar(batch, begin, end, ticks), batch
        free = end


def _grouped(operations: Sequence[Operation]) -> Iterator[Batch]:
    """Of a pipe those that were done together; else those that were in flight together."""
    batch: list[Operation] = []
    for operation in operations:
        together = batch and (
            operation.done == batch[-1].done
            if operation.ordered
            else operation.issued <= max(other.done for other in batch)
        )
        if batch and not together:
            yield tuple(batch)
            batch = []
        batch.append(operation)
    if batch:
        yield tuple(batch)


def _batch_bar(batch: Batch, begin: int, end: int, ticks: Ticks) -> Bar:
    counts = Counter(short(operation.label) for operation in batch)
    kinds = [kind_of(operation.label) for operation in batch]
    named = [f"{count} x {name}" if count > 1 else name for name, count in counts.items()]
    return Bar(
        begin=begin,
        end=end,
        kind=next((kind for kind in kinds if kind is not Kind.COMMIT), Kind.COMMIT),
        name=", ".join(named),
        details=(
            ("issued", f"{ticks.many} {batch[0].issued} to {batch[-1].issued}"),
            ("done", f"{ticks.one} {end}"),
        ),
    )
