"""How a unit says that it is misused: a `Misuse` to report, or a `UnitFault` that ends the run."""

from kernelpack.emulator.events import Misuse
from kernelpack.emulator.faults import Rule

__all__ = ["Misuse", "UnitFault", "misuse", "require"]


class UnitFault(Exception):  # noqa: N818 - a fault of the kernel, not an error of ours
    """A unit was used in a way that has no result. The machine adds who and where."""

    def __init__(self, broken: Misuse) -> None:
        super().__init__(broken.message)
        self.misuse = broken


def misuse(rule: Rule, message: str) -> Misuse:
    """Name a broken rule."""
    return Misuse(rule=rule, message=message)


def require(holds: bool, rule: Rule, message: str) -> None:
    """Raise UnitFault unless `holds`."""
    if not holds:
        raise UnitFault(misuse(rule, message))
