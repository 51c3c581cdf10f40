"""Random programs of copies and mbarriers run the same on both engines."""

import random
from collections.abc import Callable

import pytest

from kernelpack.emulator.core import attempt
from kernelpack.emulator.prepare import Dependent
from kernelpack.emulator.ptx.parser import parse
from tests.emulator.core.compare import difference
from tests.emulator.core.copies import PROGRAMS, SCHEDULES, Random
from tests.emulator.kernel import prepared

pytestmark = pytest.mark.skipif(isinstance(attempt.core(), str), reason="there is no compiler")
SEEDS = range(10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("made", PROGRAMS, ids=lambda made: made.__name__)
def test_both_engines(made: Callable[[random.Random], Random], seed: int):
    """Events, steps and bytes are the same; where Python finds something, the core doubts."""
    rng = random.Random(f"{made.__name__} {seed}")
    program, schedule = made(rng), rng.choice(SCHEDULES)
    ready = prepared(program.body, **program.shape)
    launch = Dependent(program=parse(ready.text), plan=ready.plan)
    assert difference(launch, ready.memory, schedule, seed) == ""
