"""The programs give the words they should, under every schedule, and break no rule."""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.kernel import launch
from tests.emulator.semantics.programs import PROGRAMS, Program

SCHEDULES = ("eager", "fair", "lazy", "starving:0:0")


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_program(program: Program, schedule: str):
    """Numbers do not depend on the schedule; nothing is found."""
    result, out = launch(
        program.body, threads=program.threads, grid=program.grid, cluster=program.cluster,
        inputs=program.inputs, tensor_map=program.tensor_map, schedule=schedule,
        level=Level.STRICT, target=program.target,
    )  # fmt: skip
    assert (result.error, result.findings) == (None, ())
    if callable(program.expected):
        assert program.expected(out)
    else:
        assert list(program.expected) == out[: len(program.expected)].tolist()
