"""What a CTA leaves behind when it ends: allocations of tensor memory, operations in flight."""

from collections.abc import Callable

from kernelpack.emulator.events import Bus, Exited
from kernelpack.emulator.faults import Level, Rule

RULES = {
    "tensor-memory-leak": Rule(name="tensor-memory-leak", level=Level.ERROR, section="9.7.16.7.1"),
    "in-flight-at-exit": Rule(name="in-flight-at-exit", level=Level.STRICT, section="9.7.16.6"),
    "store-in-flight-at-exit": Rule(
        name="store-in-flight-at-exit", level=Level.WARN, section="9.7.9.25.4.4"
    ),
    "setmaxnreg-warpgroup": Rule(
        name="setmaxnreg-warpgroup", level=Level.ERROR, section="9.7.19.5"
    ),
}


class Leftovers:
    """Reports what `Exited` names."""

    def __init__(self, report: Callable[..., None]) -> None:
        self.report = report

    def listen(self, bus: Bus) -> None:
        """Hear of CTAs that end."""
        bus.listen(Exited, self.on_exit)

    def on_exit(self, event: Exited) -> None:
        """One finding for each thing left."""
        for name, message in event.leftovers:
            self.report(RULES[name], f"cta {event.cta} ends: {message}")
