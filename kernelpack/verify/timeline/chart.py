"""A timeline as rows of bars: what the picture and the trace for Perfetto both show.

A row is a warp, named by its role, or a unit of a CTA that works on its own. Operations that only
one warp waits for are kept with its row.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kernelpack.emulator.ptx.syntax import Instruction
from kernelpack.emulator.trace import Cause, Operation, Position, Timeline, Unit, Warp
from kernelpack.verify.timeline.bars import (
    Bar,
    Batch,
    Kind,
    batches,
    beside,
    wait_bar,
    without_polls,
)
from kernelpack.verify.timeline.roles import Functions, busiest
from kernelpack.verify.timeline.ticks import STEPS, Ticks

_OWNER = re.compile(r".* of warp (\d+)")
_COPIES = re.compile(r"the copies on mbarrier (0x[0-9a-f]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A warp or a unit.

    Attributes:
        key: its number.
        cta: where it is.
        name: a warp's role, or what the unit is.
        note: a warp's number, or more about the unit.
        is_warp: whether it is a warp.
        bars: what it did, in order; of two that overlap one lies in the other.
        own: of a warp, the operations that it alone waits for.

    """

    key: int
    cta: Position
    name: str
    note: str
    is_warp: bool
    bars: tuple[Bar, ...]
    own: tuple[Bar, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """From a row (its key) at a step to another row at a step.

    With `wakes` it leads from who ended a wait to who waited, else from an issue to its operation.
    `bar` is the operation's, at either end; None where a warp woke a warp.
    """

    source: int
    begin: int
    target: int
    end: int
    wakes: bool
    bar: Bar | None

    @property
    def kind(self) -> Kind:
        """The operation that started or ended here."""
        return self.bar.kind if self.bar else Kind.RUN


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Rows, those of a CTA together, and the arrows between them. It is `steps` ticks long."""

    rows: tuple[Row, ...]
    arrows: tuple[Arrow, ...]
    steps: int
    ticks: Ticks = STEPS

    @property
    def ctas(self) -> tuple[Position, ...]:
        """Every CTA, in order of its start."""
        return tuple(dict.fromkeys(row.cta for row in self.rows))


def chart(
    timeline: Timeline,
    instructions: Sequence[Instruction],
    functions: Functions,
    ticks: Ticks = STEPS,
) -> Chart:
    """Lay a timeline out.

    Args:
        timeline: the launch.
        instructions: the entry's body.
        functions: the source functions of its module.
        ticks: what its steps are.

    """
    layout = _Layout(timeline, ticks)
    source = _Source(instructions, functions)
    warps = [_warp_row(warp, source, layout.own[warp.agent]) for warp in timeline.warps]
    units = [_unit_row(unit, layout.bars[unit.agent]) for unit in timeline.units]
    shown = {row.key for row in warps} | set(layout.owner)
    rows = [*warps, *(row for row in units if row.key not in shown and row.bars)]
    ctas = {cta: i for i, cta in enumerate(dict.fromkeys(row.cta for row in rows))}
    rows.sort(key=lambda row: (ctas[row.cta], not row.is_warp, row.is_warp or row.note))
    return Chart(rows=tuple(rows), arrows=tuple(layout.arrows()), steps=timeline.steps, ticks=ticks)


class _Layout:
    """Which row each operation is in, and its bar."""

    def __init__(self, timeline: Timeline, ticks: Ticks) -> None:
        self.timeline, self.ticks = timeline, ticks
        self.warps = {(warp.cta, warp.index): warp.agent for warp in timeline.warps}
        self.owner = dict(self._owners(timeline.units))
        self.bars: dict[int, list[Bar]] = defaultdict(list)
        self.own: dict[int, list[Bar]] = defaultdict(list)
        self.batches: list[tuple[int, Bar, Batch]] = []
        for unit, operations in self._by_unit().items():
            self._lay(unit, operations)

    def arrows(self) -> Iterator[Arrow]:
        """Each batch from its issue, and each wait from its cause."""
        bar_of = {}
        for row, bar, batch in self.batches:
            bar_of.update({operation.number: bar for operation in batch})
            first = batch[0]
            if first.issuer != row:
                yield Arrow(
                    source=first.issuer,
                    begin=first.issued,
                    target=row,
                    end=bar.begin,
                    wakes=False,
                    bar=bar,
                )
        for warp in self.timeline.warps:
            for wait in warp.waits:
                if wait.cause is not None and wait.cause.agent != warp.agent:
                    yield self._wake(wait.cause, bar_of, warp.agent, wait.end)

    def _wake(self, cause: Cause, bar_of: dict[int, Bar], warp: int, end: int) -> Arrow:
        return Arrow(
            source=self.owner.get(cause.agent, cause.agent),
            begin=cause.step,
            target=warp,
            end=end,
            wakes=True,
            bar=bar_of.get(cause.operation),
        )

    def _lay(self, unit: int, operations: list[Operation]) -> None:
        row = self.owner.get(unit, unit)
        place = self.own if unit in self.owner else self.bars
        for bar, batch in batches(operations, self.ticks):
            place[row].append(bar)
            self.batches.append((row, bar, batch))

    def _owners(self, units: Sequence[Unit]) -> Iterator[tuple[int, int]]:
        """Units that belong to a warp, each with its warp."""
        for unit in units:
            found = _OWNER.fullmatch(unit.name)
            if found and (unit.cta, int(found[1])) in self.warps:
                yield unit.agent, self.warps[unit.cta, int(found[1])]

    def _by_unit(self) -> dict[int, list[Operation]]:
        found: dict[int, list[Operation]] = defaultdict(list)
        for operation in self.timeline.operations:
            found[operation.unit].append(operation)
        return found


@dataclass(frozen=True, slots=True)
class _Source:
    """The lines of the kernel, and the function each belongs to."""

    instructions: Sequence[Instruction]
    functions: Functions
    known: dict[int, str] = field(default_factory=dict)

    def role(self, at: int) -> str:
        """The function of the instruction at an index; "" for the kernel itself."""
        if at not in self.known:
            inside = at < len(self.instructions)
            location = self.instructions[at].location if inside else None
            self.known[at] = self.functions.role(location)
        return self.known[at]

    def place(self, at: int | None) -> str:
        """The source line of an instruction."""
        if at is None or at >= len(self.instructions):
            return "the end"
        return self.instructions[at].place


def _warp_row(warp: Warp, source: _Source, own: Sequence[Bar]) -> Row:
    role = busiest((source.role(at), count) for at, count in warp.counts)
    runs = [
        Bar(
            begin=run.begin,
            end=run.end,
            kind=Kind.RUN,
            name=source.role(run.at) or source.place(run.at).rpartition("/")[2],
            details=(("at", source.place(run.at)),),
        )
        for run in warp.runs
    ]
    waits = without_polls(wait_bar(wait, source.place(wait.at)) for wait in warp.waits)
    clear = (beside(wait, runs) for wait in waits)
    return Row(
        key=warp.agent,
        cta=warp.cta,
        name=role or f"warp {warp.index}",
        note=f"warp {warp.index}" if role else "",
        is_warp=True,
        bars=tuple(sorted([*runs, *filter(None, clear)], key=lambda bar: bar.begin)),
        own=tuple(own),
    )


def _unit_row(unit: Unit, bars: Sequence[Bar]) -> Row:
    copies = _COPIES.fullmatch(unit.name)
    return Row(
        key=unit.agent,
        cta=unit.cta,
        name="copies" if copies else unit.name.removeprefix("the "),
        note=f"on {copies[1]}" if copies else "",
        is_warp=False,
        bars=tuple(bars),
    )
