"""Small timelines, made by hand: a CTA whose first warp loads and whose second one multiplies.

step      0    10   20   30   40   50
loader    ####----------------####      waits from 10 to 40
mma            ####------####           waits from 20 to 30
copies      =============               issued at 5, done at 30
pipe                         ====       issued at 35, done at 40
"""

from kernelpack.emulator.ptx.syntax import Instruction, Location
from kernelpack.emulator.trace import Cause, Operation, Run, Timeline, Unit, Wait, Warp
from kernelpack.verify.timeline.chart import Chart, chart
from kernelpack.verify.timeline.roles import Functions

CTA = (0, 0, 0)
LOADER, MULTIPLIER, COPIES, PIPE = range(4)
MMA = "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd2, %rd3, %r4, %p5"
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1]"
PTX = """
.loc 1 9 1
.loc 1 2 1, function_name $L__info_string0, inlined_at 1 9 1
.loc 1 4 1, function_name $L__info_string1, inlined_at 1 9 1
.file 1 "kernel.cu"
$L__info_string0:
.b8 95,90,52,108,111,97,100,118,0
$L__info_string1:
.b8 95
.b8 90
.b8 56
.b8 109,117,108,116,105,112,108,121
.b8 118
.b8 0
"""
"""Lines of a kernel that has inlined `_Z4loadv` and `_Z8multiplyv`."""


def warp(agent: int, index: int, runs, waits=(), *, at: int = 0, cta=CTA) -> Warp:
    """A warp that ran at one instruction."""
    return Warp(
        agent=agent,
        cta=cta,
        index=index,
        runs=tuple(Run(begin=begin, end=end, at=at) for begin, end in runs),
        waits=tuple(waits),
        counts=((at, sum(end - begin for begin, end in runs)),),
    )


def operation(number: int, **changes) -> Operation:
    """A multiplication on the pipe, changed."""
    values = {
        "label": MMA, "unit": PIPE, "issuer": MULTIPLIER, "issued": 35, "done": 40, "ordered": True,
    }  # fmt: skip
    return Operation(number=number, **{**values, **changes})


def mbarrier(offset: int, phase: int) -> str:
    """What a wait for an mbarrier says."""
    return (
        f"mbarrier {offset:#x} of cta (0, 0, 0) for parity {phase & 1}: phase {phase}, "
        "1 of 1 arrivals pending, tx 0"
    )


def timeline() -> Timeline:
    """The launch above."""
    woken = Wait(
        begin=20, end=30, what=mbarrier(0x400, 0), at=1, cause=Cause(agent=2, step=30, operation=1)
    )
    freed = Wait(
        begin=10, end=40, what=mbarrier(0x408, 0), at=0, cause=Cause(agent=3, step=40, operation=2)
    )
    return Timeline(
        steps=50,
        warps=(
            warp(LOADER, 0, [(0, 10), (40, 50)], [freed], at=0),
            warp(MULTIPLIER, 1, [(10, 20), (30, 40)], [woken], at=1),
        ),
        units=(
            Unit(agent=COPIES, cta=CTA, name="the copies on mbarrier 0x400"),
            Unit(agent=PIPE, cta=CTA, name="the tensor pipe"),
        ),
        operations=(
            operation(1, label=LOAD, unit=COPIES, issuer=LOADER, issued=5, done=30, ordered=False),
            operation(2),
        ),
    )


def instruction(line: int) -> Instruction:
    """An instruction of a line that was inlined into the kernel's line 9."""
    return Instruction(
        opcode="add",
        modifiers=(),
        operands=(),
        guard=None,
        text="add",
        line=1,
        location=Location("kernel.cu", line, Location("kernel.cu", 9)),
    )


def drawn(made: Timeline | None = None) -> Chart:
    """The chart of a timeline."""
    return chart(made or timeline(), [instruction(2), instruction(4)], Functions.of(PTX))
