"""Findings of `checks.races`, in words: both accesses, with the place of each."""

from dataclasses import dataclass

from kernelpack.emulator import rules
from kernelpack.emulator.checks import Reporter
from kernelpack.emulator.checks.clocks import Clocks
from kernelpack.emulator.events import Access, Unit


@dataclass(frozen=True, slots=True)
class Other:
    """The access before: by which agent, at which step of it, at which instruction, `did` what."""

    agent: int
    step: int
    place: int
    did: str


class Found:
    """Reports, each with the access that shows it and the one before that it meets."""

    def __init__(self, report: Reporter, clocks: Clocks) -> None:
        self.report, self.clocks = report, clocks

    def _what(self, event: Access) -> str:
        return event.what or self.clocks.name(event.agent)

    def _did(self, other: Other, did: str) -> str:
        """Who did what, and where."""
        return f"{self.clocks.name(other.agent)} {did} at {self.report.line(other.place)}"

    def race(self, event: Access, other: Other, cell: int, *, mixed: bool) -> None:
        """Nothing orders two accesses.

        A plain read beside an atomic operation is `mixed`: a guess that a loop of compare-and-swap
        begins with may be stale.
        """
        if event.unit.kind in rules.PAIR_DEALLOC:
            self._pair(event, other)
            return
        doing = "writes" if event.write else "reads"
        ordered = "nothing that orders the two"
        if self.clocks.saw_relaxed(event.agent, other.agent, other.step):
            ordered = "no fence between that and the relaxed store or atomic that publishes it"
        rule = rules.RACE_MIXED if mixed else rules.RACE
        if (
            other.did == "wrote"
            and event.write
            and event.unchanged is not None
            and event.unchanged()
        ):
            rule = rules.RACE_SAME_VALUE
        self.report(
            rule,
            f"{self._what(event)} {doing} {_place(event.unit, cell)}, which "
            f"{self._did(other, other.did)}, with {ordered}",
        )

    def overwritten(self, event: Access, other: Other, cell: int, *, mixed: bool) -> None:
        """A write to global memory, and nothing orders it after a read.

        A read is over on hardware when its value was used, so where a relaxed store or atomic says
        of it, the fence is what the memory model alone asks for.
        """
        if not self.clocks.saw_relaxed(event.agent, other.agent, other.step):
            self.race(event, other, cell, mixed=mixed)
            return
        self.report(
            rules.MEMORY_ORDER,
            f"{self._what(event)} writes {_place(event.unit, cell)}, which "
            f"{self._did(other, 'read')}: there is no fence before the relaxed store or "
            "atomic that publishes it",
        )

    def _pair(self, event: Access, other: Other) -> None:
        """A CTA of a pair frees tensor memory while the other one still allocates or uses it."""
        mine, theirs = self.clocks.name(event.agent), self.clocks.name(other.agent)
        there = self.report.line(other.place)
        frees, late = (
            (mine, f"{theirs} at {there}") if event.write else (f"{theirs} at {there}", mine)
        )
        action = "tcgen05.alloc" if event.unit.kind == "pair-alloc" else "use of tensor memory"
        self.report(
            rules.PAIR_DEALLOC[event.unit.kind],
            f"{frees} frees tensor memory of a pair, and nothing orders that after the {action} "
            f"by {late}",
        )

    def mbarrier(self, event: Access, cell: int) -> None:
        """The memory of an mbarrier is read or written as data."""
        doing = "writes" if event.write else "reads"
        self.report(
            rules.MBARRIER_AS_DATA,
            f"{self._what(event)} {doing} {_place(event.unit, cell)}, which holds an mbarrier: "
            "mbarrier.inval comes first",
        )

    def order(self, event: Access, other: Other, cell: int) -> None:
        """The order of two accesses holds on hardware, but not by the memory model."""
        missing = self.clocks.missing(event.agent, other.agent, other.step)
        self.report(
            rules.MEMORY_ORDER,
            f"{self._what(event)} reads {_place(event.unit, cell)}, which "
            f"{self._did(other, 'wrote')}: {missing}",
        )

    def proxy(self, event: Access, other: Other) -> None:
        """An asynchronous read of what threads wrote, without a fence."""
        by_warp = self.clocks.agents[other.agent].is_warp
        self.report(
            rules.PROXY_FENCE if by_warp else rules.PROXY_FENCE_OF_COPY,
            f"{event.what} reads {event.unit.name}, which {self._did(other, 'wrote')} through "
            "the generic proxy, with no fence.proxy.async in between",
        )

    def changed(self, event: Access, other: Other, cell: int) -> None:
        """An operand was written while its operation was in flight."""
        self.report(
            rules.OPERAND_CHANGED,
            f"{event.what} reads {_place(event.unit, cell)}, which {self._did(other, 'wrote')} "
            "between issue and execution",
        )


def _place(unit: Unit, cell: int) -> str:
    """A cell in words."""
    if unit.kind == "tensor":
        return f"{unit.name} lanes {cell // 512 * 16}+ column {cell % 512}"
    return f"{unit.name} at {hex(4 * cell)}"
