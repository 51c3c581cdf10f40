# ruff: noqa: E501  (bodies of kernels: one a line)
"""What is not modelled is refused by name: when it is reached, and before."""

import pytest

from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.translate import refusals
from kernelpack.errors import UnsupportedError
from tests.emulator.kernel import launch, text

SHIFT = "tcgen05.shift.cta_group::1.down [%r1];"
SUB_BYTE = "wmma.load.a.sync.aligned.row.m8n8k32.shared.s4 {%r1}, [%r2], 32;"


def forms(body: str, target: str = "sm_100a") -> list[str]:
    """The refused forms of a body, as they are reported."""
    return [str(one) for one in refusals.of_entry(parse(text(body, target=target)).entry("test"))]


@pytest.mark.parametrize(
    ("instruction", "target"),
    [
        (SUB_BYTE, "sm_100a"),
        ("wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r1, %r2}, {%r3}, {%r4}, {%r1, %r2};", "sm_100a"),
        ("mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%r1, %r2}, {%r3}, {%r4}, {%r1, %r2};", "sm_100a"),
        ("mma.sync.aligned.m16n8k64.row.col.s32.u4.u4.s32 {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r1, %r2, %r3, %r4};", "sm_100a"),
        ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%r1, %r2}, {%r3}, {%r4}, {%r1, %r2};", "sm_100a"),
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, {%r1, %r2}, {%r3, %r4}, {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7};", "sm_100a"),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r1, %r2}, {%r1, %r2, %r3, %r4}, %r5, 0;", "sm_100a"),
        ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, %r1, 0, 1, 1, 1, 0, 0;", "sm_90a"),
        ("tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r2], %r3, %p1;", "sm_100a"),
        (SHIFT, "sm_100a"),
        ("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 4;", "sm_100a"),
    ],
)  # fmt: skip
def test_a_form_that_is_not_modelled(instruction: str, target: str):
    """It ends a run that reaches it, and is known without one."""
    name = instruction.split(" ", maxsplit=1)[0]
    with pytest.raises(UnsupportedError, match=name.replace(".", r"\.")):
        launch(instruction, target=target)
    assert forms(instruction, target) == [f"`{name}` at ptx:22"]


def test_what_is_not_reached_is_no_error():
    """A kernel may hold a form for a case that does not come up."""
    result, _ = launch(f"bra Z; {SHIFT} Z:")
    assert result.error is None


def test_all_forms_are_named_at_once():
    """With how often each is there, whichever the schedule comes to first."""
    with pytest.raises(UnsupportedError) as caught:
        launch(f"{SHIFT} {SUB_BYTE}\n {SUB_BYTE}")
    assert caught.value.hint == (
        "`test` has 2 such forms: `tcgen05.shift.cta_group::1.down` at ptx:22, "
        "`wmma.load.a.sync.aligned.row.m8n8k32.shared.s4` (2 times) at ptx:22"
    )


def test_one_form_alone_needs_no_list():
    """The error names it."""
    with pytest.raises(UnsupportedError) as caught:
        launch(f"{SHIFT} {SHIFT}")
    assert caught.value.hint == ""


def test_branches_and_calls_are_modelled():
    """They lead elsewhere, and need no row of the table."""
    called = ".func add(.param .b32 x) { ret; }"
    body = "bra A; A: .branchtargets A; { .param .b32 x; st.param.b32 [x], %r1; call.uni add, (x); } @%p1 exit;"
    module = text(body).replace(".visible .entry", f"{called}\n.visible .entry", 1)
    assert refusals.of_entry(parse(module).entry("test")) == ()
