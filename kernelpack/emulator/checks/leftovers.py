"""Leftovers of a CTA at its end: allocations of tensor memory, operations in flight."""

from collections.abc import Callable

from kernelpack.emulator.events import Bus, Exited


class Leftovers:
    """Reports what `Exited` names."""

    def __init__(self, report: Callable[..., None]) -> None:
        self.report = report

    def listen(self, bus: Bus) -> None:
        """Hear of CTAs that end."""
        bus.listen(Exited, self.on_exit)

    def on_exit(self, event: Exited) -> None:
        """One finding for each thing left."""
        for rule, message in event.leftovers:
            self.report(rule, f"cta {event.cta} ends: {message}")
