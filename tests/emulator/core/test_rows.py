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
OURS = {
    "abs": "f32",
    "add": "f32 rn.f32 s32 s64",
    "and": "b16 b32 b64 pred",
    "bfi": "b32",
    "bfind": "shiftamt.u32",
    "brev": "b32",
    "cvt": (
        "f32.f16 rn.bf16x2.f32 rn.f16x2.e4m3x2 rn.f32.s32 rn.f32.u32 "
        "rn.satfinite.e2m1x2.f32 rn.satfinite.e4m3x2.f32 rpi.f32.f32 s64.s32 u16.u32 "
        "u32.u16 u32.u64 u64.u16 u64.u32"
    ),
    "cvta": "to.global.u64 param.u64",
    "div": "approx.f32 rn.f32 u16 u32 u64",
    "ex2": "approx.ftz.f32",
    "fma": "rn.bf16x2 rn.f32",
    "lg2": "approx.ftz.f32",
    "mad": "lo.s32 lo.s64",
    "max": "NaN.f32 f32 s32 u32",
    "min": "NaN.f32 f32 u32",
    "mov": "b16 b32 b64 f32 pred u16 u32 u64",
    "mul": "f32 hi.u32 lo.s32 lo.s64 rn.bf16x2 rn.f32 wide.s32 wide.u16 wide.u32",
    "neg": "f32 s32",
    "not": "b32 pred",
    "or": "b32 b64 pred",
    "popc": "b32",
    "prmt": "b32",
    "rcp": "rn.f32",
    "rem": "u16 u32",
    "selp": "b16 b32 b64 f32 u16 u32",
    "setp": (
        "eq.b16 eq.b32 eq.b64 eq.f32 eq.s16 eq.s32 eq.s64 eq.u32 ge.u32 ge.u64 geu.f32 "
        "gt.f32 gt.s32 gt.u32 le.u32 leu.f32 lt.f32 lt.s32 lt.u32 lt.u64 nan.f32 ne.b16 "
        "ne.b32 ne.b64 ne.s16 ne.s32 ne.s64 ne.u32 neu.f32"
    ),
    "shf": "l.wrap.b32",
    "shl": "b32 b64",
    "shr": "u32 u64",
    "sqrt": "rn.f32",
    "sub": "f32 rn.f32 s32 s64",
    "xor": "b16 b32 pred",
}

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
    made = [of_text(f"{name}.{rest}") for name, all_ in OURS.items() for rest in all_.split()]
    assert [one.name for one in made if not Kernel([one], draw).taken()] == []
    check(made, draw)
