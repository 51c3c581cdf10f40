"""What came of a program: its launches, what was wrong with each, and its own exit status."""

from collections.abc import Iterator
from dataclasses import dataclass

from kernelpack.emulator.faults import Finding, Level
from kernelpack.errors import KernelpackError

_NAMED = 72
"""Characters of a kernel's name that are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong with a launch: a finding, or the fault that ended it.

    `rule` is the finding's, or the fault's kind in lower case (`deadlock`). `expected` says why it
    is no news; empty where nobody expected it.
    """

    rule: str
    kernel: str
    place: str
    text: str
    level: Level = Level.ERROR
    expected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch: what was asked for, what it took, what was wrong."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    steps: int = 0
    seconds: float = 0.0
    problems: tuple[Problem, ...] = ()

    def __str__(self) -> str:
        shape = f"grid {self.grid} block {self.block} cluster {self.cluster}"
        rate = self.steps / max(self.seconds, 1e-9)
        return (
            f"{shorten(self.kernel)}: {shape}, {self.shared_bytes} shared bytes: "
            f"{self.steps} warp instructions in {self.seconds:.2f} s ({rate:.0f}/s)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A program's run. `refused` are the calls and modules that are not modelled."""

    launches: tuple[Launch, ...]
    refused: tuple[str, ...]
    returncode: int

    def problems(self) -> Iterator[Problem]:
        """Every problem of every launch."""
        for launch in self.launches:
            yield from launch.problems

    @property
    def is_right(self) -> bool:
        """Whether the program succeeded, nothing was refused, and no problem was news."""
        news = any(not problem.expected for problem in self.problems())
        return self.returncode == 0 and not self.refused and not news


def of_finding(finding: Finding, kernel: str) -> Problem:
    """A finding as a problem."""
    return Problem(
        rule=finding.rule.name,
        kernel=kernel,
        place=finding.place,
        text=str(finding),
        level=finding.rule.level,
    )


def of_error(error: KernelpackError, kernel: str) -> Problem:
    """The error that ended a launch as a problem."""
    rule = type(error).__name__.removesuffix("Error").lower()
    return Problem(rule=rule, kernel=kernel, place=error.where, text=str(error))


def shorten(kernel: str) -> str:
    """A kernel's name, cut in the middle where it is long: C++ names of templates are."""
    if len(kernel) <= _NAMED:
        return kernel
    return f"{kernel[: _NAMED - 16]}…{kernel[-15:]}"


def record(report: Report) -> dict[str, object]:
    """The report for programs."""
    return {
        "right": report.is_right,
        "returncode": report.returncode,
        "refused": list(report.refused),
        "steps": sum(launch.steps for launch in report.launches),
        "seconds": round(sum(launch.seconds for launch in report.launches), 3),
        "launches": [_launch(launch) for launch in report.launches],
    }


def _launch(launch: Launch) -> dict[str, object]:
    return {
        "kernel": launch.kernel,
        "grid": launch.grid,
        "block": launch.block,
        "cluster": launch.cluster,
        "shared_bytes": launch.shared_bytes,
        "steps": launch.steps,
        "seconds": round(launch.seconds, 3),
        "problems": [
            {
                "rule": problem.rule,
                "level": problem.level.name.lower(),
                "place": problem.place,
                "text": problem.text,
                "expected": problem.expected,
            }
            for problem in launch.problems
        ],
    }
