"""The emulator notices faults: every one put into a GEMM that is otherwise right."""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.mutation.faults import SEEDED, Seeded
from tests.emulator.mutation.gemm import GEMM, SCHEDULES, multiply


def is_caught(text: str, level: Level) -> bool:
    """Whether some schedule gives wrong numbers, a finding or an error."""
    for schedule in SCHEDULES:
        result, right = multiply(text, schedule, level=level)
        if not right or not result.clean:
            return True
    return False


def test_the_gemm_is_right():
    """Without a fault nothing is found, at the strictest level, under any schedule."""
    assert not is_caught(GEMM, Level.STRICT)


@pytest.mark.parametrize("seeded", SEEDED, ids=lambda s: s.name)
def test_a_fault_is_caught(seeded: Seeded):
    """Wrong numbers, a finding or an error, at the level the table says."""
    assert is_caught(seeded.text, seeded.level)


def test_nearly_all_are_caught_by_default():
    """At least 95 in 100 need no strict level; each other one gives its reason."""
    by_default = [seeded for seeded in SEEDED if seeded.level <= Level.WARN]
    assert len(by_default) >= 0.95 * len(SEEDED)
    assert all(seeded.reason for seeded in SEEDED if seeded.level > Level.WARN)
