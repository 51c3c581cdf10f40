"""The checks that ask who knows what; they share one set of clocks."""

from kernelpack.emulator.checks import Reporter
from kernelpack.emulator.checks.arrivals import Arrivals
from kernelpack.emulator.checks.clocks import Clocks
from kernelpack.emulator.checks.races import Races
from kernelpack.emulator.events import Bus


class Ordering:
    """Races and named barriers, and the clocks that both read."""

    def __init__(self, report: Reporter) -> None:
        clocks = Clocks()
        self.parts = (clocks, Races(report, clocks), Arrivals(report, clocks))

    def listen(self, bus: Bus) -> None:
        """Hear of everything, the clocks first."""
        for part in self.parts:
            part.listen(bus)
