"""Misuse that the hardware units themselves notice.

Bounds, alignment, initialisation, mbarriers, tensor memory: the unit names the rule, this check
passes it on.
"""

from collections.abc import Callable

from kernelpack.emulator.events import Bus, Misuse


class UnitMisuse:
    """Every `Misuse` is a finding."""

    def __init__(self, report: Callable[..., None]) -> None:
        self.report = report

    def listen(self, bus: Bus) -> None:
        """Hear of misuse."""
        bus.listen(Misuse, self.on_misuse)

    def on_misuse(self, event: Misuse) -> None:
        """Pass it on."""
        if event.once:
            self.report(event.rule, event.message, event.lane, once=True)
        else:
            self.report(event.rule, event.message, event.lane)
