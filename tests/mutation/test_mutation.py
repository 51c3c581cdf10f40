"""Seeded faults are caught, as docs/mutation.md says; the kernels without one are clean.

A few run each time, all of them by `pytest -m mutation`.
"""

from collections.abc import Callable

import pytest

from kernelpack.emulator.faults import Level
from kernelpack.errors import CompileError
from tests.kept import Compile
from tests.mutation.fault import Caught, Fault, read_faults
from tests.mutation.subjects import SUBJECTS
from tests.mutation.table import PAGE, page
from tests.mutation.trial import Trial, make

pytestmark = [pytest.mark.xdist_group("mutation")]

WHOLE = pytest.mark.mutation
FAULTS = read_faults()
FAST = [fault for fault in FAULTS if fault.fast]
REST = [fault for fault in FAULTS if not fault.fast and fault.caught]
TWINS = [
    pytest.param(
        name,
        schedule,
        marks=[] if schedule == "lazy" and not subject.is_shown_elsewhere else WHOLE,
    )
    for name, subject in SUBJECTS.items()
    for schedule in subject.schedules()
]


def broken(fault: Fault, compile_source: Compile) -> frozenset[str]:
    """What is wrong with a subject that has the fault in it."""
    try:
        trial = make(SUBJECTS[fault.subject], fault, compile_source)
    except CompileError:
        return frozenset({Caught.BUILD})
    return trial.broken(fault.schedule, fault.level)


@pytest.mark.toolchain
@pytest.mark.parametrize("fault", FAST, ids=lambda fault: fault.id)
def test_a_telling_fault_is_caught(compile_source: Compile, fault: Fault) -> None:
    """The rule is named, or the numbers are wrong."""
    assert fault.caught in broken(fault, compile_source)


@pytest.mark.toolchain
@WHOLE
@pytest.mark.parametrize("fault", REST, ids=lambda fault: fault.id)
def test_a_fault_is_caught(compile_source: Compile, fault: Fault) -> None:
    """The rule is named, or the numbers are wrong."""
    assert fault.caught in broken(fault, compile_source)


@pytest.mark.toolchain
@pytest.mark.parametrize(("subject", "schedule"), TWINS)
def test_without_a_fault_nothing_is_wrong(
    unharmed: Callable[[str], Trial], subject: str, schedule: str
) -> None:
    """The near twin of every fault is clean at the strictest level, its numbers are right."""
    assert unharmed(subject).broken(schedule, Level.STRICT) == frozenset()


def test_names_are_unique() -> None:
    """A fault has one line in the table."""
    assert len({fault.id for fault in FAULTS}) == len(FAULTS)


def test_most_are_caught_by_default() -> None:
    """At least 95 of 100 faults show at the level at which everybody runs."""
    caught = [fault for fault in FAULTS if fault.caught and fault.level < Level.STRICT]
    assert len(caught) / len(FAULTS) >= 0.95


def test_what_is_not_caught_by_default_has_a_reason() -> None:
    """A fault that needs the strict level, or shows nowhere, says why; no other one does."""
    late = {fault.id for fault in FAULTS if fault.level == Level.STRICT or not fault.caught}
    assert late == {fault.id for fault in FAULTS if fault.because}


def test_the_page_is_up_to_date() -> None:
    """docs/mutation.md is what `python -m tests.mutation.table` writes."""
    assert PAGE.read_text() == page()
