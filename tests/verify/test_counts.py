"""What is counted of a launch: by hand for a kernel of three lines, by tables for the rest."""

import numpy as np
import pytest

from kernelpack.emulator.call import call
from kernelpack.emulator.events import Access, Began, Ended, Issued, Ran
from kernelpack.emulator.events import Unit as Memory
from kernelpack.emulator.ptx.parser import parse
from kernelpack.verify.counts import Counts, by_unit, engine, products_of_warps, unit
from tests.verify import small

SHARED, TENSOR = Memory("shared", "shared", 64), Memory("tensor", "tensor", 512)
WGMMA = "wgmma.mma_async.sync.aligned.m64n24k16.f32.bf16.bf16 {%f1}, a, b"
COPY = "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%r2]"
MMA = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r1], %rd1, %rd2"


class Step:
    """An instruction of a text."""

    def __init__(self, text):
        self.opcode, *self.modifiers = text.split(".")


def access(unit, cells, write=False, **more):
    return Access(unit=unit, cells=np.arange(cells), agent=1, write=write, proxy="generic", **more)


def did(counts, label, *accesses, operation=1):
    """An operation that accesses memory."""
    counts.on_issue(Issued(operation=operation, parent=0, agent=1, label=label))
    counts.on_begin(Began(operation=operation, agent=1, ordered=True))
    for each in accesses:
        counts.on_access(each)
    counts.on_end(Ended(operation=operation, agent=1))


def test_three_lines():
    """Two warps of fourteen instructions; each element is read and written once."""
    counts, case = Counts(), small.case_of(40)
    program, variant = parse(small.ptx().text), small.variant()
    sizes = {"n": 40, "sm_count": 148}
    result = call(program, variant, sizes, small.inputs(case), checks=[counts.join]).result
    instructions = program.entry(variant.entry).body.instructions
    executions = counts.executions(len(instructions))
    assert (sum(executions), executions) == (result.steps, [2] * 14)
    assert by_unit(instructions, executions) == {
        "integer": 12,
        "memory": 10,
        "control": 4,
        "float": 2,
    }
    assert counts.moved == {("threads", "read", "global"): 160, ("threads", "write", "global"): 160}


def test_a_loop():
    """Runs that overlap: each instruction as often as a run passed it."""
    counts = Counts()
    for first, count in ((0, 5), (2, 3), (2, 3), (4, 1)):
        counts.on_run(Ran(agent=0, first=first, count=count))
    assert counts.executions(6) == [1, 1, 3, 3, 4, 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "tensor"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", "tensor"),
        ("wgmma.commit_group.sync.aligned", "barriers"),
        ("tcgen05.mma.cta_group::1.kind::f16", "tensor"),
        ("tcgen05.ld.sync.aligned.32x32b.x8.b32", "copies"),
        ("tcgen05.wait::ld.sync.aligned", "barriers"),
        ("cp.async.bulk.tensor.2d", "copies"),
        ("st.async.weak.shared::cluster", "copies"),
        ("st.global.f32", "memory"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "memory"),
        ("mbarrier.try_wait.parity.shared.b64", "barriers"),
        ("bar.sync", "barriers"),
        ("shfl.sync.bfly.b32", "lanes"),
        ("bra.uni", "control"),
        ("ex2.approx.ftz.f32", "special"),
        ("fma.rn.f32", "float"),
        ("cvt.rn.bf16x2.f32", "float"),
        ("add.s32", "integer"),
        ("setp.lt.u32", "integer"),
        ("brev.b32", "integer"),
        ("barely.b32", "integer"),
    ],
)
def test_unit(text, expected):
    """The unit that does an instruction's work."""
    assert unit(Step(text)) == expected


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (WGMMA, "wgmma.mma_async"),
        (COPY, "cp.async.bulk.tensor"),
        (MMA, "tcgen05.mma"),
        ("cp.async.cg.shared.global [%r1], [%r2], 16", "cp.async"),
        ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r1]", "st.async"),
        ("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r1}, [%r2]", "tcgen05.ld"),
    ],
)
def test_engine(label, expected):
    """An operation's engine, whatever its form."""
    assert engine(label) == expected


def test_bytes():
    """Cells by the bytes of them that are accessed; columns of tensor memory are of 16 lanes."""
    counts = Counts()
    did(counts, COPY, access(SHARED, 8, write=True))
    counts.on_access(access(SHARED, 4, bytes_mask=3))
    counts.on_access(access(SHARED, 2, bytes_mask=np.array([1, 15], np.uint8)))
    did(counts, "tcgen05.ld.sync [%r1]", access(TENSOR, 2))
    assert counts.moved == {
        ("cp.async.bulk.tensor", "write", "shared"): 32,
        ("threads", "read", "shared"): 8 + 5,
        ("tcgen05.ld", "read", "tensor"): 2 * 16 * 4,
    }


def test_what_moves_nothing():
    """A wait on an mbarrier and an allocation of tensor memory move no bytes."""
    counts = Counts()
    counts.on_access(access(SHARED, 2, mbarrier="use"))
    counts.on_access(access(TENSOR, 512, write=True))
    assert not counts.moved


def test_products_of_wgmma():
    """Four warps issue their parts of one."""
    counts = Counts()
    for number in range(4):
        did(counts, WGMMA, operation=number)
    assert (counts.products, counts.operations) == (64 * 24 * 16, {"wgmma.mma_async": 4})


def test_products_of_tcgen05():
    """The elements that it writes, each a sum as long as its kind's K."""
    counts = Counts()
    did(counts, MMA, access(TENSOR, 64, write=True), access(SHARED, 8))
    assert counts.products == 64 * 16 * 64


def test_products_of_mma():
    """What warps multiply and wait for."""
    steps = [Step("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"), Step("add.s32")]
    assert products_of_warps(steps, [3, 9]) == 3 * 16 * 8 * 16
