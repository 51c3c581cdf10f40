# ruff: noqa: E501  (a table of programs: one a line)
"""Moves, vectors, addresses, special registers."""

import pytest

from kernelpack.errors import UnsupportedError
from tests.emulator.semantics.bench import Case, case, check, evaluate

LANES = list(range(32))

CASES = [
    case("mov.b32 %d, %a;", "b32", [5], a=("b32", [5])),
    case("mov.f32 %d, 0f3FC00000;", "f32", [1.5]),
    case("mov.f32 %d, 1.5;", "f32", [1.5]),
    case("mov.f64 %d, 0d3FF8000000000000;", "f64", [1.5]),
    case("mov.s32 %d, -7;", "s32", [-7]),
    case("mov.u64 %d, 0xFFFFFFFFFFFFFFFF;", "u64", [-1]),
    case("mov.pred %d, 1;", "pred", [1]),
    case("mov.b64 %d, {%a, %b};", "b64", [0x0000_0002_0000_0001], a=("b32", [1]), b=("b32", [2])),
    case("mov.b32 {%byte, %d}, %a;", "b16", [0x1234], a=("b32", [0x1234_5678])),
    case("mov.b32 {%d, _}, %a;", "b16", [0x5678], a=("b32", [0x1234_5678])),
    case("{.reg .b128 q; mov.b128 q, {%a, %b}; mov.b128 {_, %d}, q;}", "b64", [9], a=("b64", [7]), b=("b64", [9])),
    case("mov.u32 %d, %laneid;", "u32", LANES),
    case("mov.u32 %d, %tid.x;", "u32", LANES),
    case("mov.u32 %d, %lanemask_lt;", "u32", [(1 << lane) - 1 for lane in LANES]),
    case("mov.u32 %d, %ntid.x;", "u32", [32]),
    case("mov.u32 %d, WARP_SZ;", "u32", [32]),
    case("{.shared .align 16 .b8 s[64]; mov.u32 %d, s;}", "u32", [1024]),
    case("{.shared .align 16 .b8 s[64]; .reg .u64 x; mov.u64 x, s; cvta.shared.u64 x, x; cvta.to.shared.u64 %d, x;}", "u64", [1024]),
    case("{.shared .align 16 .b8 s[64]; .reg .u64 x; mov.u64 x, s; cvta.shared.u64 x, x; isspacep.shared %d, x;}", "pred", [1]),
    case("isspacep.global %d, %at;", "pred", [1]),
    case("isspacep.local %d, %at;", "pred", [0]),
    case("mapa.shared::cluster.u32 %d, %a, %b;", "u32", [0x0300_0400], a=("u32", [0x0100_0400]), b=("u32", [3])),
    case("getctarank.shared::cluster.u32 %d, %a;", "u32", [3], a=("u32", [0x0300_0400])),
    case("createpolicy.fractional.L2::evict_last.b64 %d, 0f3F800000;", "b64", [0]),
    case("createpolicy.range.global.L2::evict_last.b64 %d, [%at], 1024, 4096;", "b64", [0]),
    case("activemask.b32 %d;", "b32", [0xFFFF_FFFF]),
]  # fmt: skip


@pytest.mark.parametrize("one", CASES)
def test_move(one: Case):
    """A move gives its operand, its parts, or what a register of the machine holds."""
    check(one)


@pytest.mark.parametrize(
    "text",
    [
        "mov.u32 %d, %pm0;",
        "txq.width.b32 %d, [%at];",
        "tex.2d.v4.f32.f32 %d, [t, {%d}];",
        "suld.b.1d.b32.trap {%d}, [%at, {%d}];",
        "mul.rp.f16 %d, %d, %d;",
    ],
)
def test_what_is_not_modelled_is_named(text: str):
    """An instruction or modifier outside the tables is an error that shows it."""
    with pytest.raises(UnsupportedError, match=r"not modelled|rounding"):
        evaluate(Case(text, "b16" if "f16 %d" in text else "u32", [0]))
