"""Errors of an emulated kernel.

Three failures, never confused: a *finding* says the kernel is wrong and the run goes on; a *fault*
is a wrong from which it cannot go on; *unsupported* says that the emulator does not model something
and nothing was approximated.
"""

import re
from dataclasses import dataclass
from enum import IntEnum

from kernelpack.errors import KernelpackError, ProblemError, UnsupportedError

__all__ = [
    "AssertionFailed",
    "Deadlock",
    "EmulationError",
    "Fault",
    "Finding",
    "Level",
    "PtxError",
    "Rule",
    "StepLimit",
    "Trap",
    "UnsupportedError",
]


class Level(IntEnum):
    """How sure a rule is. A run reports the rules up to its own level."""

    ERROR = 0  # wrong on every machine
    WARN = 1  # wrong by the manual, usually without effect, or a sign of an error elsewhere
    STRICT = 2  # production kernels do it on real hardware, though the manual forbids it

    @classmethod
    def of(cls, given: "Level | str") -> "Level":
        """A level, or the one of a name.

        Raises:
            ProblemError: there is none of that name.

        """
        if isinstance(given, cls):
            return given
        names = [level.name.lower() for level in cls]
        if given not in names:
            raise ProblemError(f"no level `{given!s:.40}`", hint=f"levels: {', '.join(names)}")
        return cls[str(given).upper()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule that a kernel can break: its name, how sure it is, and where it is written.

    `what` says what is wrong, `mend` what would be right. All of them are in `emulator.rules`.
    """

    name: str
    level: Level
    section: str
    """The section of PTX ISA 9.1 that says so."""
    what: str
    mend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken rule at one instruction. `lane` is the first lane concerned, if there is one."""

    rule: Rule
    message: str
    cta: tuple[int, int, int]
    warp: int | None
    lane: int | None
    place: str
    instruction: str
    count: int = 1
    launch: int = 0
    """Which of several launches that overlap."""

    def __str__(self) -> str:
        who = f"cta {self.cta}" + ("" if self.warp is None else f" warp {self.warp}")
        lane = "" if self.lane is None else f" lane {self.lane}"
        times = "" if self.count == 1 else f" ({self.count} times)"
        return (
            f"{who}{lane} — {self.place}: {self.message}{times} "
            f"[{self.rule.name}, PTX ISA {self.rule.section}] `{brief(self.instruction)}`"
        )


_LONG_LIST = re.compile(r"\{([^{},]+),[^{}]{40,},([^{},]+)\}")


def brief(instruction: str) -> str:
    """An instruction with the ends of its long lists of registers: a `wgmma` has a hundred."""
    return _LONG_LIST.sub(r"{\1, …,\2}", instruction)


class EmulationError(KernelpackError):
    """A run that cannot go on. `where` names CTA, warp and source line."""


class PtxError(EmulationError):
    """A text that is not PTX this parser can read."""


class Fault(EmulationError):  # noqa: N818 - a fault is the kernel's, an error the user's
    """The kernel did something after which no result means anything."""


class Trap(Fault):
    """The kernel stopped itself: `trap`, or a device-side assertion."""


class AssertionFailed(Trap):
    """A device-side `assert` that does not hold."""


class Deadlock(Fault):
    """No warp can go on and nothing is in flight; the report names every wait."""


class StepLimit(Fault):
    """More instructions than the run was allowed."""
