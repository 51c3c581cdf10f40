"""The tables of one-instruction tests give the same bytes on both engines."""

import numpy as np
import pytest

from kernelpack.emulator.core import attempt
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.prepare import Dependent
from kernelpack.emulator.ptx.parser import parse
from kernelpack.spec.launch import Dim3, Plan, Pointer
from tests.emulator.core.compare import difference
from tests.emulator.semantics import (
    test_bitwise,
    test_compare,
    test_convert,
    test_floating,
    test_integer,
    test_move,
)
from tests.emulator.semantics.bench import LANES, NUMPY, Case, array, program

TABLES = (test_integer, test_bitwise, test_floating, test_compare, test_convert, test_move)
CASES = [one for table in TABLES for one in table.CASES]
NOT_TAKEN = ("the core does not run it", "doubt: ")
"""What a difference says of a form that is left to Python."""

pytestmark = pytest.mark.skipif(
    isinstance(attempt.core(), str), reason="there is no C++ compiler: the Python engine runs all"
)


def launch(one: Case) -> tuple[Dependent, GlobalMemory]:
    """A case as a launch, and its memory."""
    memory = GlobalMemory(1 << 16)
    places = [memory.put(np.zeros(LANES, NUMPY[one.result]), "d")]
    places += [memory.put(array(*given), name) for name, given in one.operands.items()]
    arguments = tuple(Pointer(place) for place in places)
    plan = Plan(entry="one", grid=Dim3(1), block=Dim3(LANES), arguments=arguments)
    return Dependent(program=parse(program(one)), plan=plan), memory


@pytest.mark.parametrize("one", CASES)
def test_a_case_is_the_same_on_both_engines(one: Case) -> None:
    """Its result, its events; or the core leaves it to Python."""
    what = difference(*launch(one), "eager")
    assert not what or what.startswith(NOT_TAKEN)
