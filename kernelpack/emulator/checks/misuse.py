"""What the hardware units themselves notice.

Bounds, alignment, initialisation, mbarriers, tensor memory: the unit names the rule, this check
passes it on.
"""

from collections.abc import Callable

from kernelpack.emulator.events import Bus, Misuse
from kernelpack.emulator.faults import Rule


class UnitMisuse:
    """Every `Misuse` is a finding."""

    def __init__(self, report: Callable[..., None]) -> None:
        self.report = report
        self.rules: dict[str, Rule] = {}

    def listen(self, bus: Bus) -> None:
        """Hear of misuse."""
        bus.listen(Misuse, self.on_misuse)

    def on_misuse(self, event: Misuse) -> None:
        """Pass it on."""
        rule = self.rules.get(event.rule)
        if rule is None or rule.level != event.level:
            rule = Rule(name=event.rule, level=event.level, section=event.section)
            self.rules[event.rule] = rule
        self.report(rule, event.message, event.lane)
