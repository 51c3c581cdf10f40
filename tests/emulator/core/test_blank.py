"""Registers that were never written are ones on both engines, whatever a run before left there."""

import pytest

from kernelpack.emulator.core import attempt
from kernelpack.emulator.prepare import Dependent
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.schedule import Schedule
from tests.emulator.core.compare import Both, both
from tests.emulator.kernel import Prepared, prepared

pytestmark = pytest.mark.skipif(isinstance(attempt.core(), str), reason="there is no compiler")
REGISTERS = [*(f"%r{i}" for i in range(32)), *(f"%f{i}" for i in range(160))]
LITTER = "".join(f"mov.b32 {name}, 0x{i + 5:x};" for i, name in enumerate(REGISTERS))

ON_NO_PATH = "add.u32 %r1, %r2, 1; st.global.b32 [%mine], %r1;"
ON_ONE_PATH = """
  setp.lt.u32 %p1, %thread, 7; @%p1 bra B; mov.u32 %r3, 3; bra E;
B: mov.u32 %r4, 4;
E: add.u32 %r5, %r3, %r4; st.global.b32 [%mine], %r5;
"""
UNDER_A_GUARD = """
  setp.lt.u32 %p1, %thread, 7; @%p1 mov.u32 %r3, 3; st.global.b32 [%mine], %r3;
"""
IN_A_LOOP = """
  mov.u32 %r1, 0; mov.u32 %r7, 0;
L: add.u32 %r7, %r7, %r6; mov.u32 %r6, %r1; add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 3; @%p1 bra L; st.global.b32 [%mine], %r7;
"""
OF_ANOTHER_LANE = """
  setp.lt.u32 %p1, %thread, 7; @%p1 bra B; mov.u32 %r3, %thread;
B: shfl.sync.bfly.b32 %r4, %r3, 1, 31, 0xffffffff; st.global.b32 [%mine], %r4;
"""


def run(body: str) -> Both:
    made: Prepared = prepared(body)
    program = parse(made.text)
    return both(Dependent(program=program, plan=made.plan), made.memory, Schedule.parse("eager"))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(ON_NO_PATH, id="no path writes it"),
        pytest.param(ON_ONE_PATH, id="one path writes it"),
        pytest.param(UNDER_A_GUARD, id="some lanes write it"),
        pytest.param(IN_A_LOOP, id="a later turn of a loop writes it"),
        pytest.param(OF_ANOTHER_LANE, id="another lane looks at it"),
    ],
)
def test_a_register_never_written_is_ones(body: str):
    assert (run(LITTER).difference, run(LITTER).doubt) == ("", "")
    found = run(body)
    assert (found.difference, found.doubt) == ("", "")
