"""The report of a program: its launches, their mistakes, and its own exit status."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kernelpack.emulate.names import readable, shorten
from kernelpack.emulator.faults import Finding, Level
from kernelpack.errors import KernelpackError


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something wrong: a finding, the fault that ended a launch, or a call that cannot be done.

    `rule` is the finding's, or the error's kind in lower case (`deadlock`). `kernel` is empty where
    no launch is concerned. `expected` says why it is no news; empty where nobody expected it.
    """

    rule: str
    kernel: str
    place: str
    text: str
    level: Level = Level.ERROR
    expected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch: what was asked for, what it took, what was wrong.

    `schedule` is the one it ran under. A launch that is not on trial ran unchecked, or natively.
    `overlaps` is the kernel before it, where it could begin before that one had ended.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    overlaps: str = ""
    schedule: str = "eager"
    on_trial: bool = True
    steps: int = 0
    seconds: float = 0.0
    troubles: tuple[Trouble, ...] = ()

    def __str__(self) -> str:
        shape = f"grid {self.grid} block {self.block} cluster {self.cluster}"
        head = f"{shorten(self.kernel)}: {shape}, {self.shared_bytes} shared bytes: "
        if self.overlaps:
            overlap = f", after {shorten(self.overlaps)} and before its end"
            return f"{head}{self.steps} warp instructions{overlap}"
        rate = self.steps / max(self.seconds, 1e-9)
        return f"{head}{self.steps} warp instructions in {self.seconds:.2f} s ({rate:.0f}/s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A program's run.

    `errors` are calls that failed and that a program should not have made: a copy out of bounds, a
    second free. `refused` are the calls and modules that are not modelled, `missed` the options
    that no launch was concerned by.
    """

    launches: tuple[Launch, ...]
    errors: tuple[Trouble, ...]
    refused: tuple[str, ...]
    missed: tuple[str, ...]
    returncode: int

    def findings(self) -> Iterator[Trouble]:
        """Every trouble of every launch."""
        for launch in self.launches:
            yield from launch.troubles

    @property
    def is_right(self) -> bool:
        """Whether the program succeeded, no trouble was news, and nothing was left undone."""
        news = any(not trouble.expected for trouble in (*self.findings(), *self.errors))
        return not (self.returncode or self.refused or self.missed or news)


@dataclass(frozen=True, slots=True)
class Log:
    """The log of a program while it runs."""

    launches: list[Launch] = field(default_factory=list)
    errors: list[Trouble] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def report(self, missed: Sequence[str], returncode: int) -> Report:
        """The report of the program, once it has ended."""
        return Report(
            launches=tuple(self.launches),
            errors=tuple(self.errors),
            refused=tuple(self.refused),
            missed=tuple(missed),
            returncode=returncode,
        )


def of_finding(finding: Finding, kernel: str) -> Trouble:
    """A finding as a trouble."""
    return Trouble(
        rule=finding.rule.name,
        kernel=kernel,
        place=finding.place,
        text=str(finding),
        level=finding.rule.level,
    )


def of_error(error: KernelpackError, kernel: str = "") -> Trouble:
    """The error that ended a launch, or the failure of another call, as a trouble."""
    return Trouble(rule=kind_of(type(error)), kernel=kernel, place=error.where, text=str(error))


def kind_of(error: type[KernelpackError]) -> str:
    """The name of an error among findings."""
    return error.__name__.removesuffix("Error").lower()


def record(report: Report) -> dict[str, object]:
    """The report for programs."""
    return {
        "right": report.is_right,
        "returncode": report.returncode,
        "errors": [_trouble(trouble) for trouble in report.errors],
        "refused": list(report.refused),
        "missed": list(report.missed),
        "steps": sum(launch.steps for launch in report.launches),
        "seconds": round(sum(launch.seconds for launch in report.launches), 3),
        "launches": [_launch(launch) for launch in report.launches],
    }


def _launch(launch: Launch) -> dict[str, object]:
    return {
        "kernel": launch.kernel,
        "name": readable(launch.kernel),
        "grid": launch.grid,
        "block": launch.block,
        "cluster": launch.cluster,
        "shared_bytes": launch.shared_bytes,
        "overlaps": launch.overlaps,
        "schedule": launch.schedule,
        "on_trial": launch.on_trial,
        "steps": launch.steps,
        "seconds": round(launch.seconds, 3),
        "problems": [_trouble(trouble) for trouble in launch.troubles],
    }


def _trouble(trouble: Trouble) -> dict[str, object]:
    return {
        "rule": trouble.rule,
        "level": trouble.level.name.lower(),
        "place": trouble.place,
        "text": trouble.text,
        "expected": trouble.expected,
    }
