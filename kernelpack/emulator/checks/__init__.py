"""Checks: small classes that listen to events and report broken rules.

A check knows events and faults, nothing of the machine. Each is made with the function it reports
to; `listen` subscribes it.
"""

from collections.abc import Callable
from typing import Protocol

from kernelpack.emulator.events import Bus
from kernelpack.emulator.faults import Rule


class Reporter(Protocol):
    """Takes a finding; the run adds who and where."""

    def __call__(
        self, rule: Rule, message: str, lane: int | None = None, *, once: bool = False
    ) -> None:
        """Report that `rule` is broken at what runs now; `once`: for all instructions together."""

    @property
    def at(self) -> int:
        """The instruction that runs now, as a number that `line` takes."""

    def line(self, at: int) -> str:
        """An instruction's place in its file."""


class Check(Protocol):
    """A check that is ready to listen."""

    def listen(self, bus: Bus) -> None:
        """Subscribe to the events it needs."""


from kernelpack.emulator.checks.lanes import LaneRaces  # noqa: E402
from kernelpack.emulator.checks.leftovers import Leftovers  # noqa: E402
from kernelpack.emulator.checks.misuse import UnitMisuse  # noqa: E402
from kernelpack.emulator.checks.ordering import Ordering  # noqa: E402
from kernelpack.emulator.checks.starts import Starts  # noqa: E402
from kernelpack.emulator.checks.swizzles import Swizzles  # noqa: E402
from kernelpack.emulator.checks.tensor_fences import TensorFences  # noqa: E402

ALL: tuple[Callable[[Reporter], Check], ...] = (
    UnitMisuse,
    Leftovers,
    Starts,
    Ordering,
    LaneRaces,
    TensorFences,
    Swizzles,
)
"""Every check, in the order in which they hear of an event."""
