"""What the hardware units themselves notice.

Bounds, alignment, initialisation, mbarriers, tensor memory: the unit names the rule, this check
passes it on.
"""

from collections.abc import Callable

from kernelpack.emulator.events import Bus, Misuse
from kernelpack.emulator.faults import Level, Rule


class UnitMisuse:
    """Every `Misuse` is a finding."""

    def __init__(self, report: Callable[..., None]) -> None:
        self.report = report
        self.rules: dict[tuple[str, Level, str], Rule] = {}

    def listen(self, bus: Bus) -> None:
        """Hear of misuse."""
        bus.listen(Misuse, self.on_misuse)

    def on_misuse(self, event: Misuse) -> None:
        """Pass it on."""
        key = event.rule, event.level, event.section
        rule = self.rules.get(key)
        if rule is None:
            name, level, section = key
            rule = self.rules[key] = Rule(name=name, level=level, section=section)
        if event.once:
            self.report(rule, event.message, event.lane, once=True)
        else:
            self.report(rule, event.message, event.lane)
