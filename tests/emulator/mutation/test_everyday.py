"""Faults of ordinary kernels are found by name; the kernels without them are clean at strict."""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.kernel import launch, rules
from tests.emulator.mutation.everyday import FAULTS, HEAD, PROGRAMS, Fault


def broken(name: str, body: str, level: Level, schedule: str) -> set[str]:
    """The rules that a program breaks."""
    _, threads, grid, cluster = PROGRAMS[name]
    result, _ = launch(
        f"{HEAD} {body}", threads=threads, grid=grid, cluster=cluster, level=level,
        schedule=schedule,
    )  # fmt: skip
    return rules(result)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_fault_nothing_is_found(name: str, schedule: str):
    """At the strictest level."""
    assert broken(name, PROGRAMS[name][0], Level.STRICT, schedule) == set()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.program}: {fault.name}")
def test_a_fault_is_found(fault: Fault):
    """By its own rule, at the level at which that is reported."""
    assert fault.rule in broken(fault.program, fault.body, fault.level, fault.schedule)


def test_nearly_all_are_found_by_default():
    """At least 95 in 100, and at least forty."""
    by_default = [fault for fault in FAULTS if fault.level < Level.STRICT]
    assert len(by_default) >= max(40, 0.95 * len(FAULTS))
