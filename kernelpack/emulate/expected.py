"""Findings that are true and known: a file that says which, and why they are let pass.

[[finding]]
rule = "proxy-fence"              # a rule's name, or `deadlock`
kernel = "*gemm_device*"          # patterns, as of file names; `*` where left out
place = "01_mma_sm100.cu:*"
text = "* reads shared memory *"      # of the finding
schedule = "starving:*"
reason = "no fence.proxy.async between the stores to shared memory and the MMA"
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from kernelpack.emulate.report import Problem
from kernelpack.errors import KernelpackError

_KEYS = ("rule", "kernel", "place", "text", "schedule", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Which findings are expected, by patterns, and why."""

    rule: str
    reason: str
    kernel: str = "*"
    place: str = "*"
    text: str = "*"
    schedule: str = "*"

    def covers(self, problem: Problem, schedule: str) -> bool:
        """Whether a problem under a schedule is one of these."""
        return (
            problem.rule == self.rule
            and fnmatchcase(problem.kernel, self.kernel)
            and fnmatchcase(problem.place, self.place)
            and fnmatchcase(problem.text, self.text)
            and fnmatchcase(schedule, self.schedule)
        )


def load(path: Path) -> tuple[Expectation, ...]:
    """Read a file of expected findings.

    Raises:
        KernelpackError: it is not TOML, or an entry has an unknown key or lacks one.

    """
    try:
        entries = tomllib.loads(path.read_text()).get("finding", [])
    except tomllib.TOMLDecodeError as error:
        raise KernelpackError(f"not TOML: {error}", where=str(path)) from error
    for entry in entries:
        strange = [key for key in entry if key not in _KEYS]
        if strange or not {"rule", "reason"} <= entry.keys():
            raise KernelpackError(
                f"an expected finding with the keys {', '.join(entry)}",
                where=str(path),
                hint=f"`rule` and `reason` must be there; keys: {', '.join(_KEYS)}",
            )
    return tuple(Expectation(**entry) for entry in entries)


def judge(problem: Problem, expectations: Iterable[Expectation], schedule: str) -> Problem:
    """The problem, with the reason for which it is expected, if it is."""
    for expectation in expectations:
        if expectation.covers(problem, schedule):
            return replace(problem, expected=expectation.reason)
    return problem
