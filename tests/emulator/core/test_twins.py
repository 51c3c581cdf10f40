"""Twins on both engines: the core doubts where Python finds something, and else does the same."""

import pytest

from kernelpack.emulator.core import attempt
from kernelpack.emulator.prepare import Dependent
from kernelpack.emulator.ptx.parser import parse
from tests.emulator.core.compare import difference
from tests.emulator.core.twins import PROGRAMS, Program

pytestmark = pytest.mark.skipif(isinstance(attempt.core(), str), reason="there is no compiler")
STRICTER = (
    "an instruction that the core does not run",
    "a register that is still being filled is used",
    "a unit works on an mbarrier that no fence has shown it",
)
"""Doubts of the machine about programs that Python runs to their end with nothing to remark."""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: f"{p.rule}-{p.schedule}")
def test_both_engines(program: Program):
    """Events, steps and bytes are the same; or the core doubts, as it must where Python finds."""
    made = program.prepared()
    found = difference(
        Dependent(program=parse(made.text), plan=made.plan), made.memory, program.schedule
    )
    told = ("doubt: ", "the core does not run it: ")
    if not found.startswith(tuple(words + reason for words in told for reason in STRICTER)):
        assert found == ""
