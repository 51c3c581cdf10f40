"""One cluster of a launch by itself: both engines run the same one, to the same end."""

import pytest

from kernelpack.emulator.core.attempt import attempt, core
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.prepare import Dependent, prepare
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.run import run
from kernelpack.emulator.schedule import Schedule
from kernelpack.formats.dtype import DType
from kernelpack.spec.launch import Dim3, Plan, Pointer

pytestmark = pytest.mark.skipif(isinstance(core(), str), reason="there is no compiled engine")

PTX = """
.version 8.7
.target sm_90a
.address_size 64
.entry k(.param .u64 out) {
    .reg .b64 %rd<4>; .reg .b32 %r<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    add.u32 %r2, %r1, 100;
    st.global.u32 [%rd3], %r2;
    ret;
}
"""


@pytest.mark.parametrize("compiled", [True, False])
def test_no_other_cluster_runs(compiled: bool) -> None:
    memory = GlobalMemory(1 << 16)
    address = memory.zeros(16, "out")
    plan = Plan(
        entry="k", grid=Dim3(4), block=Dim3(32), cluster=Dim3(1), shared_bytes=0,
        programmatic=False, arguments=(Pointer(address),),
    )  # fmt: skip
    done = run(parse(PTX), plan, memory, checks=(), only=(2,), compiled=compiled)
    assert done.error is None
    assert done.steps == 7
    assert memory.read(address, 16).view(DType.U32.numpy).tolist() == [0, 0, 102, 0]


def test_the_compiled_engine_runs_it() -> None:
    memory = GlobalMemory(1 << 16)
    address = memory.zeros(16, "out")
    plan = Plan(
        entry="k", grid=Dim3(4), block=Dim3(32), cluster=Dim3(1), shared_bytes=0,
        programmatic=False, arguments=(Pointer(address),),
    )  # fmt: skip
    wanted = [Dependent(program=parse(PTX), plan=plan)]
    made = prepare(wanted, memory, Schedule(), lambda *_: None)
    found = attempt(*made[0], memory, Schedule(), step_limit=1000, watched=False, only=3)
    assert not isinstance(found, str)
    assert (found.doubt, found.steps) == ("", 7)
    assert memory.read(address, 16).view(DType.U32.numpy).tolist() == [0, 0, 0, 103]
