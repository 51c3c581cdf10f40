"""Named barriers: who arrives without waiting must not arrive again before the barrier is reset.

PTX ISA 9.7.13.1. The second arrival counts for the phase that is still open, and the warps that
wait for the next one starve. So whoever arrived alone must know, by its next arrival at the same
barrier, that everybody of that phase has come: as they do under some schedules by luck.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kernelpack.emulator import rules
from kernelpack.emulator.checks.clocks import EXECUTED, Clocks
from kernelpack.emulator.events import Arrived, Bus, Exited


@dataclass(slots=True)
class _Barrier:
    """Who came to each phase, and at which of its steps; who left without waiting, and when."""

    came: dict[int, dict[int, int]] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)
    """Agent → the phase at which it arrived without waiting."""


class Arrivals:
    """Checks each arrival at a named barrier against the one before it of the same warp."""

    def __init__(self, report: Callable[..., None], clocks: Clocks) -> None:
        self.report, self.clocks = report, clocks
        self.barriers: dict[tuple[int, int], _Barrier] = {}

    def listen(self, bus: Bus) -> None:
        """Hear of arrivals."""
        bus.listen(Arrived, self.on_arrived)
        bus.listen(Exited, self.on_exit)

    def on_arrived(self, event: Arrived) -> None:
        """Compare, then note."""
        agent, phase = event.agent, event.phase
        key = self.clocks.agents[agent].cta, event.barrier
        barrier = self.barriers.setdefault(key, _Barrier())
        if agent in barrier.left:
            self._compare(event, barrier, barrier.left.pop(agent))
        if not event.waits:
            barrier.left[agent] = phase
        oldest = min(barrier.left.values(), default=phase)
        for old in [one for one in barrier.came if one < oldest]:
            del barrier.came[old]
        barrier.came.setdefault(phase, {})[agent] = self.clocks.step(agent)

    def _compare(self, event: Arrived, barrier: _Barrier, left: int) -> None:
        again = f"{self.clocks.name(event.agent)} arrives again at barrier {event.barrier}"
        if left == event.phase:
            self.report(
                rules.BARRIER_ARRIVE, f"{again}, which is not complete since its bar.arrive"
            )
            return
        for other, step in barrier.came[left].items():
            known = self.clocks.known_step(event.agent, other, EXECUTED)
            if other != event.agent and known < step:
                text = f"nothing orders it after {self.clocks.name(other)} has come to the last one"
                self.report(rules.BARRIER_ARRIVE, f"{again} after a bar.arrive there, and {text}")
                return

    def on_exit(self, event: Exited) -> None:
        """Forget the barriers of a CTA."""
        gone = {self.clocks.agents[agent].cta for agent in event.agents}
        for key in [key for key in self.barriers if key[0] in gone]:
            del self.barriers[key]
