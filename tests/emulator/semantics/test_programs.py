"""The programs give the words they should, under every schedule, and break no rule."""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.kernel import launch
from tests.emulator.semantics.programs.copies import COPY, MBARRIER
from tests.emulator.semantics.programs.launch_control import LAUNCH_CONTROL
from tests.emulator.semantics.programs.matrices import MATRIX, WGMMA
from tests.emulator.semantics.programs.memory import ATOMIC, MEMORY
from tests.emulator.semantics.programs.program import Program
from tests.emulator.semantics.programs.tensor_copies import TENSOR
from tests.emulator.semantics.programs.tensor_memory import TCGEN05
from tests.emulator.semantics.programs.warp import BARRIER, WARP

PROGRAMS = [
    *MEMORY, *ATOMIC, *WARP, *BARRIER, *MBARRIER, *COPY, *TENSOR, *TCGEN05, *WGMMA, *MATRIX,
    *LAUNCH_CONTROL,
]  # fmt: skip
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
