"""Every row of the table that computes gives the same bytes on both engines."""

import random

import pytest

from kernelpack.emulator.core import attempt
from kernelpack.emulator.semantics.table import TABLE
from tests.emulator.core.rows import Kernel, Made, drawn, of_text

FORMS, TRIES, COPIES = 12, 300, 3
NOT_TAKEN = {
    *("sin", "cos", "alloca", "stacksave", "stackrestore"),
    *(name for name in TABLE.rows if name.startswith(("clusterlaunchcontrol", "createpolicy"))),
}
"""Rows whose values the core leaves to Python, or that have no operands to draw."""
ROWS = sorted(
    op.name for op in TABLE.rows.values() if op.kind == "lanes" and op.name not in NOT_TAKEN
)
LAST_BITS = "an approximation whose rounding hangs on its last bits"
NAN_64 = "a NaN of f64"

# What the kernels of this project compute with.
OURS = [
    "abs.f32",
    "add.f32",
    "add.rn.f32",
    "add.s32",
    "add.s64",
    "and.b16",
    "and.b32",
    "and.b64",
    "and.pred",
    "bfi.b32",
    "brev.b32",
    "bfind.shiftamt.u32",
    "cvt.f32.f16",
    "cvt.rn.bf16x2.f32",
    "cvt.rn.f16x2.e4m3x2",
    "cvt.rn.f32.s32",
    "cvt.rn.f32.u32",
    "cvt.rn.satfinite.e2m1x2.f32",
    "cvt.rn.satfinite.e4m3x2.f32",
    "cvt.rpi.f32.f32",
    "cvt.s64.s32",
    "cvt.u16.u32",
    "cvt.u32.u16",
    "cvt.u32.u64",
    "cvt.u64.u16",
    "cvt.u64.u32",
    "div.approx.f32",
    "div.rn.f32",
    "div.u16",
    "div.u32",
    "div.u64",
    "ex2.approx.ftz.f32",
    "fma.rn.bf16x2",
    "fma.rn.f32",
    "lg2.approx.ftz.f32",
    "mad.lo.s32",
    "mad.lo.s64",
    "max.NaN.f32",
    "max.f32",
    "max.s32",
    "max.u32",
    "min.NaN.f32",
    "min.f32",
    "min.u32",
    "mov.b16",
    "mov.b32",
    "mov.b64",
    "mov.f32",
    "mov.pred",
    "mov.u16",
    "mov.u32",
    "mov.u64",
    "mul.f32",
    "mul.hi.u32",
    "mul.lo.s32",
    "mul.lo.s64",
    "mul.rn.bf16x2",
    "mul.rn.f32",
    "mul.wide.s32",
    "mul.wide.u16",
    "mul.wide.u32",
    "neg.f32",
    "neg.s32",
    "not.b32",
    "not.pred",
    "or.b32",
    "or.b64",
    "or.pred",
    "popc.b32",
    "prmt.b32",
    "rcp.rn.f32",
    "rem.u16",
    "rem.u32",
    "selp.b16",
    "selp.b32",
    "selp.b64",
    "selp.f32",
    "selp.u16",
    "selp.u32",
    "setp.eq.b16",
    "setp.eq.b32",
    "setp.eq.b64",
    "setp.eq.f32",
    "setp.eq.s16",
    "setp.eq.s32",
    "setp.eq.s64",
    "setp.eq.u32",
    "setp.ge.u32",
    "setp.ge.u64",
    "setp.geu.f32",
    "setp.gt.f32",
    "setp.gt.s32",
    "setp.gt.u32",
    "setp.le.u32",
    "setp.leu.f32",
    "setp.lt.f32",
    "setp.lt.s32",
    "setp.lt.u32",
    "setp.lt.u64",
    "setp.nan.f32",
    "setp.ne.b16",
    "setp.ne.b32",
    "setp.ne.b64",
    "setp.ne.s16",
    "setp.ne.s32",
    "setp.ne.s64",
    "setp.ne.u32",
    "setp.neu.f32",
    "shf.l.wrap.b32",
    "shl.b32",
    "shl.b64",
    "shr.u32",
    "shr.u64",
    "sqrt.rn.f32",
    "sub.f32",
    "sub.rn.f32",
    "sub.s32",
    "sub.s64",
    "xor.b16",
    "xor.b32",
    "xor.pred",
    "cvta.to.global.u64",
    "cvta.param.u64",
]

pytestmark = pytest.mark.skipif(
    isinstance(attempt.core(), str), reason="there is no C++ compiler: the Python engine runs all"
)


def forms(name: str, draw: random.Random) -> list[Made]:
    """Random forms of a row that the core takes."""
    made = {str(one): one for one in (drawn(TABLE.rows[name], draw) for _ in range(TRIES)) if one}
    found = [one for one in made.values() if Kernel([one], draw).taken()]
    return found[:FORMS]


def check(made: list[Made], draw: random.Random) -> None:
    """Run them together; where the core doubts, each alone, and only of f64 and approximations."""
    wrong, doubt = Kernel(made * COPIES, draw).differing()
    assert wrong == []
    for one in made if doubt else ():
        wrong, why = Kernel([one] * COPIES, draw, finite=True).differing()
        assert wrong == []
        assert why.split(" (")[0] in ("", NAN_64, LAST_BITS), one


@pytest.mark.parametrize("name", ROWS)
def test_a_row_gives_the_same_bytes(name: str) -> None:
    """Random forms, inputs at the ends of ranges and any others, guards of a few lanes or none."""
    draw = random.Random(name)
    made = forms(name, draw)
    assert made, "the core takes no form of it"
    check(made, draw)


def test_the_core_takes_what_our_kernels_compute_with() -> None:
    """Each of their forms; and they give the same bytes."""
    draw = random.Random(0)
    made = [of_text(name) for name in OURS]
    assert [one.name for one in made if not Kernel([one], draw).taken()] == []
    check(made, draw)
