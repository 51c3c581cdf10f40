# ruff: noqa: E501  (a table of programs: one a line)
"""Comparison and selection."""

import pytest

from tests.emulator.semantics.bench import Case, case, check

NAN = float("nan")
ORDER = {"a": ("f32", [1.0, 2.0, NAN]), "b": ("f32", [2.0, 2.0, 1.0])}
ANSWERS = {
    "eq": [0, 1, 0], "ne": [1, 0, 0], "lt": [1, 0, 0], "le": [1, 1, 0], "gt": [0, 0, 0],
    "ge": [0, 1, 0], "equ": [0, 1, 1], "neu": [1, 0, 1], "ltu": [1, 0, 1], "leu": [1, 1, 1],
    "gtu": [0, 0, 1], "geu": [0, 1, 1], "num": [1, 1, 0], "nan": [0, 0, 1],
}  # fmt: skip

CASES = [
    *[case(f"setp.{name}.f32 %d, %a, %b;", "pred", answer, **ORDER) for name, answer in ANSWERS.items()],
    case("setp.lt.s32 %d, %a, %b;", "pred", [1, 0], a=("s32", [-1, 1]), b=("s32", [0, 0])),
    case("setp.lt.u32 %d, %a, %b;", "pred", [0], a=("u32", [-1]), b=("u32", [0])),
    case("setp.lo.u32 %d, %a, %b;", "pred", [1], a=("u32", [1]), b=("u32", [2])),
    case("setp.ls.u64 %d, %a, %b;", "pred", [1], a=("u64", [2]), b=("u64", [2])),
    case("setp.hi.u32 %d, %a, %b;", "pred", [0], a=("u32", [1]), b=("u32", [2])),
    case("setp.hs.u32 %d, %a, %b;", "pred", [1], a=("u32", [2]), b=("u32", [2])),
    case("setp.eq.b64 %d, %a, %b;", "pred", [1], a=("b64", [7]), b=("b64", [7])),
    case("setp.gt.bf16 %d, %a, %b;", "pred", [1], a=("bf16", [2.0]), b=("bf16", [1.0])),
    case("setp.eq.ftz.f32 %d, %a, %b;", "pred", [1], a=("f32", [1e-45]), b=("f32", [0.0])),
    case("setp.lt.and.s32 %d, %a, %b, %c;", "pred", [1, 0], a=("s32", [1]), b=("s32", [2]), c=("pred", [1, 0])),
    case("setp.lt.or.s32 %d, %a, %b, !%c;", "pred", [0, 1], a=("s32", [3]), b=("s32", [2]), c=("pred", [1, 0])),
    case("setp.lt.xor.s32 %d, %a, %b, %c;", "pred", [0, 1], a=("s32", [1]), b=("s32", [2]), c=("pred", [1, 0])),
    case("setp.lt.s32 %p0|%d, %a, %b;", "pred", [0, 1], a=("s32", [1, 3]), b=("s32", [2])),
    case("setp.gt.f16x2 %d|%p0, %a, %b;", "pred", [1], a=("b32", [0x3C00_4000]), b=("b32", [0x4000_3C00])),
    case("set.lt.u32.s32 %d, %a, %b;", "u32", [0xFFFF_FFFF, 0], a=("s32", [1, 3]), b=("s32", [2])),
    case("set.lt.f32.f32 %d, %a, %b;", "f32", [1.0, 0.0], a=("f32", [1, 3]), b=("f32", [2])),
    case("set.lt.and.u32.s32 %d, %a, %b, %c;", "u32", [0], a=("s32", [1]), b=("s32", [2]), c=("pred", [0])),
    case("selp.b32 %d, %a, %b, %c;", "b32", [1, 2], a=("b32", [1]), b=("b32", [2]), c=("pred", [1, 0])),
    case("selp.f64 %d, %a, 2.5, %c;", "f64", [1.0, 2.5], a=("f64", [1.0]), c=("pred", [1, 0])),
    case("slct.s32.s32 %d, %a, %b, %c;", "s32", [1, 2, 1], a=("s32", [1]), b=("s32", [2]), c=("s32", [0, -1, 5])),
    case("slct.f32.f32 %d, %a, %b, %c;", "f32", [1, 2], a=("f32", [1]), b=("f32", [2]), c=("f32", [-0.0, -1.0])),
]  # fmt: skip


@pytest.mark.parametrize("one", CASES)
def test_compare(one: Case):
    """A comparison or selection gives what the manual says, for NaN too."""
    check(one)
