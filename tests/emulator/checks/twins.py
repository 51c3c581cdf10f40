"""Twins: a kernel that breaks a rule, and a near one that does not.

The two differ where `§` is: the first text is put there to break the rule, the second one to
keep it.
"""

from dataclasses import dataclass

from kernelpack.emulator.faults import Level
from tests.emulator.kernel import launch, rules


@dataclass(frozen=True)
class Twins:
    """A body with a gap, what breaks `rule` in it, and what keeps it."""

    rule: str
    body: str
    bad: str
    good: str
    threads: int = 32
    grid: int = 1
    cluster: int = 1
    level: Level = Level.WARN
    schedule: str = "eager"
    target: str = "sm_100a"


def broken(twins: Twins, text: str) -> set[str]:
    """The rules that one of the two breaks."""
    result, _ = launch(
        twins.body.replace("§", text), threads=twins.threads, grid=twins.grid,
        cluster=twins.cluster, level=twins.level, schedule=twins.schedule, target=twins.target,
    )  # fmt: skip
    return rules(result)
