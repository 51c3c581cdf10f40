"""What `checks.races` finds, in words."""

from collections.abc import Callable

from kernelpack.emulator.checks.clocks import Clocks
from kernelpack.emulator.events import Access, Unit
from kernelpack.emulator.faults import Level, Rule

RACE = Rule(name="race", level=Level.ERROR, section="8.10")
PROXY = Rule(name="proxy-fence", level=Level.ERROR, section="9.7.13.5")
SCOPE = Rule(name="scope", level=Level.WARN, section="8.5")
CHANGED = Rule(name="operand-changed", level=Level.ERROR, section="9.7.16.6")
PAIR = {
    "pair-use": Rule(name="pair-dealloc", level=Level.WARN, section="9.7.16.7.1"),
    "pair-alloc": Rule(name="pair-dealloc", level=Level.ERROR, section="9.7.16.7.1"),
}
"""By the kind of unit: what the other CTA of a pair does, and a release may overtake."""


class Found:
    """Reports, each with the access that shows it and the agent that did the other one."""

    def __init__(self, report: Callable[..., None], clocks: Clocks) -> None:
        self.report, self.clocks = report, clocks

    def _what(self, event: Access) -> str:
        return event.what or self.clocks.name(event.agent)

    def race(self, event: Access, other: int, did: str, cell: int) -> None:
        """Nothing orders two accesses."""
        if event.unit.kind in PAIR:
            self._pair(event, other)
            return
        doing = "writes" if event.write else "reads"
        self.report(
            RACE,
            f"{self._what(event)} {doing} {_place(event.unit, cell)}, which "
            f"{self.clocks.name(other)} {did} with nothing that orders the two",
        )

    def _pair(self, event: Access, other: int) -> None:
        """A CTA of a pair frees tensor memory while the other one still allocates or uses it."""
        mine, theirs = self.clocks.name(event.agent), self.clocks.name(other)
        frees, late = (mine, theirs) if event.write else (theirs, mine)
        action = "tcgen05.alloc" if event.unit.kind == "pair-alloc" else "use of tensor memory"
        self.report(
            PAIR[event.unit.kind],
            f"{frees} frees tensor memory of a pair, and nothing orders that behind the {action} "
            f"by {late}",
        )

    def scope(self, event: Access, writer: int, cell: int) -> None:
        """What orders two accesses does not reach the other CTA."""
        self.report(
            SCOPE,
            f"{self._what(event)} reads {_place(event.unit, cell)}, which "
            f"{self.clocks.name(writer)} wrote: they are of different CTAs, and an arrival or wait "
            "that orders the two has the scope of one; .release.cluster and .acquire.cluster reach "
            "the other",
        )

    def proxy(self, event: Access, writer: int) -> None:
        """An asynchronous read of what threads wrote, without a fence."""
        self.report(
            PROXY,
            f"{event.what} reads {event.unit.name}, written by {self.clocks.name(writer)} through "
            "the generic proxy, with no fence.proxy.async in between",
        )

    def changed(self, event: Access, writer: int, cell: int) -> None:
        """An operand was written while its operation was in flight."""
        self.report(
            CHANGED,
            f"{event.what} reads {_place(event.unit, cell)}, which {self.clocks.name(writer)} "
            "wrote between issue and execution",
        )


def _place(unit: Unit, cell: int) -> str:
    """A cell in words."""
    if unit.kind == "tensor":
        return f"{unit.name} lanes {cell // 512 * 16}+ column {cell % 512}"
    return f"{unit.name} at {hex(4 * cell)}"
