# ruff: noqa: E501  (a table of programs: one a line)
"""Floating-point arithmetic: rounding, NaN, signed zeros, packed forms."""

from fractions import Fraction

import numpy as np
import pytest

from tests.emulator.semantics.bench import Case, case, check, evaluate

NAN, INF, TINY = float("nan"), float("inf"), 2.0**-149
PTX_NAN = 0x7FFF_FFFF


def pair(low: float, high: float) -> int:
    """Two f16 in 32 bits."""
    return int(np.float16(low).view(np.uint16)) | int(np.float16(high).view(np.uint16)) << 16


def bpair(low: float, high: float) -> int:
    """Two bf16 in 32 bits; the values must be exact."""
    halves = [int(np.float32(x).view(np.uint32)) >> 16 for x in (low, high)]
    return halves[0] | halves[1] << 16


def fpair(low: float, high: float) -> int:
    """Two f32 in 64 bits."""
    return int(np.float32(low).view(np.uint32)) | int(np.float32(high).view(np.uint32)) << 32


ONE_UP = 1 + 2.0**-23
CASES = [
    case("add.rn.f32.f16 %d, %a, %b;", "f32", [3.5], a=("f16", [3.0]), b=("f32", [0.5])),
    case("sub.rn.f32.f16 %d, %a, %b;", "f32", [2.5], a=("f16", [3.0]), b=("f32", [0.5])),
    case("sub.rz.sat.f32.bf16 %d, %a, %b;", "f32", [1.0], a=("bf16", [3.0]), b=("f32", [0.5])),
    case("add.f32 %d, %a, %b;", "f32", [3.5], a=("f32", [1.0]), b=("f32", [2.5])),
    case("add.f32 %d, %a, %b;", "b32", [PTX_NAN], a=("f32", [INF]), b=("f32", [-INF])),
    case("add.rz.f32 %d, %a, %b;", "f32", [1.0], a=("f32", [1.0]), b=("f32", [2.0**-24])),
    case("add.rp.f32 %d, %a, %b;", "f32", [ONE_UP], a=("f32", [1.0]), b=("f32", [2.0**-60])),
    case("add.rm.f32 %d, %a, %b;", "f32", [-ONE_UP], a=("f32", [-1.0]), b=("f32", [-(2.0**-60)])),
    case("add.rn.ftz.f32 %d, %a, %b;", "f32", [0.0], a=("f32", [TINY]), b=("f32", [TINY])),
    case("add.sat.f32 %d, %a, %b;", "f32", [1.0, 0.0], a=("f32", [3.0, -3.0]), b=("f32", [1.0])),
    case("add.f64 %d, %a, %b;", "f64", [0.1 + 0.2], a=("f64", [0.1]), b=("f64", [0.2])),
    case("add.f16 %d, %a, %b;", "f16", [2048.0], a=("f16", [2048.0]), b=("f16", [1.0])),
    case("add.bf16 %d, %a, %b;", "bf16", [256.0], a=("bf16", [256.0]), b=("bf16", [1.0])),
    case("add.f16x2 %d, %a, %b;", "b32", [pair(3, 7)], a=("b32", pair(1, 3)), b=("b32", pair(2, 4))),
    case("add.bf16x2 %d, %a, %b;", "b32", [bpair(3, 7)], a=("b32", bpair(1, 3)), b=("b32", bpair(2, 4))),
    case("add.rn.f32x2 %d, %a, %b;", "b64", [fpair(3, 7)], a=("b64", fpair(1, 3)), b=("b64", fpair(2, 4))),
    case("add.rm.ftz.f32x2 %d, %a, %b;", "b64", [fpair(1, -1 - 2.0**-23)], a=("b64", fpair(1, -1)), b=("b64", fpair(2.0**-60, -(2.0**-60)))),
    case("sub.f32 %d, %a, %b;", "f32", [-1.5], a=("f32", [1.0]), b=("f32", [2.5])),
    case("sub.rp.f32 %d, %a, %b;", "f32", [ONE_UP], a=("f32", [1.0]), b=("f32", [-(2.0**-60)])),
    case("sub.f16x2 %d, %a, %b;", "b32", [pair(-1, -1)], a=("b32", pair(1, 3)), b=("b32", pair(2, 4))),
    case("mul.f32 %d, %a, %b;", "f32", [-6.0], a=("f32", [2.0]), b=("f32", [-3.0])),
    case("mul.rz.f32 %d, %a, %b;", "f32", [1 + 2.0**-22], a=("f32", [ONE_UP]), b=("f32", [ONE_UP])),
    case("mul.ftz.f32 %d, %a, %b;", "f32", [-0.0], a=("f32", [-TINY]), b=("f32", [1.0])),
    case("mul.bf16x2 %d, %a, %b;", "b32", [bpair(2, 12)], a=("b32", bpair(1, 3)), b=("b32", bpair(2, 4))),
    case("mad.rn.f32 %d, %a, %b, %c;", "f32", [7.0], a=("f32", [2.0]), b=("f32", [3.0]), c=("f32", [1.0])),
    case("fma.rn.f32 %d, %a, %b, %c;", "f32", [7.0], a=("f32", [2.0]), b=("f32", [3.0]), c=("f32", [1.0])),
    case("fma.rz.f32 %d, %a, %b, %c;", "f32", [1.0], a=("f32", [2.0**-30]), b=("f32", [2.0**-30]), c=("f32", [1.0])),
    case("fma.rn.f64 %d, %a, %b, %c;", "f64", [2.0**-104], a=("f64", [1 + 2.0**-52]), b=("f64", [1 + 2.0**-52]), c=("f64", [-1 - 2.0**-51])),
    case("fma.rn.f16 %d, %a, %b, %c;", "f16", [7.0], a=("f16", [2.0]), b=("f16", [3.0]), c=("f16", [1.0])),
    case("fma.rn.relu.f16x2 %d, %a, %b, %c;", "b32", [pair(0, 7)], a=("b32", pair(-2, 2)), b=("b32", pair(3, 3)), c=("b32", pair(1, 1))),
    case("fma.rn.bf16x2 %d, %a, %b, %c;", "b32", [bpair(7, 7)], a=("b32", bpair(2, 2)), b=("b32", bpair(3, 3)), c=("b32", bpair(1, 1))),
    case("fma.rn.f32x2 %d, %a, %b, %c;", "b64", [fpair(7, -5)], a=("b64", fpair(2, 2)), b=("b64", fpair(3, -3)), c=("b64", fpair(1, 1))),
    case("fma.rn.f32.bf16 %d, %a, %b, %c;", "f32", [7.0], a=("bf16", [2.0]), b=("bf16", [3.0]), c=("f32", [1.0])),
    case("div.rn.f32 %d, %a, %b;", "f32", [np.float32(1) / np.float32(3)], a=("f32", [1.0]), b=("f32", [3.0])),
    case("div.full.f32 %d, %a, %b;", "f32", [0.5], a=("f32", [1.0]), b=("f32", [2.0])),
    case("abs.f32 %d, %a;", "f32", [1.5, 0.0], a=("f32", [-1.5, -0.0])),
    case("abs.s32 %d, %a;", "s32", [3], a=("s32", [-3])),
    case("abs.bf16x2 %d, %a;", "b32", [bpair(1, 2)], a=("b32", bpair(-1, 2))),
    case("neg.f32 %d, %a;", "b32", [0x8000_0000], a=("f32", [0.0])),
    case("neg.s32 %d, %a;", "s32", [-3], a=("s32", [3])),
    case("neg.f16x2 %d, %a;", "b32", [pair(-1, 2)], a=("b32", pair(1, -2))),
    case("neg.ftz.f32 %d, %a;", "f32", [-0.0], a=("f32", [TINY])),
    case("min.f32 %d, %a, %b;", "f32", [1.0, 2.0], a=("f32", [1.0, NAN]), b=("f32", [3.0, 2.0])),
    case("min.f32 %d, %a, %b;", "b32", [0x8000_0000], a=("f32", [0.0]), b=("f32", [-0.0])),
    case("max.f32 %d, %a, %b;", "b32", [0], a=("f32", [0.0]), b=("f32", [-0.0])),
    case("max.NaN.f32 %d, %a, %b;", "b32", [PTX_NAN], a=("f32", [NAN]), b=("f32", [2.0])),
    case("max.f32 %d, %a, %b, %c;", "f32", [3.0], a=("f32", [1.0]), b=("f32", [3.0]), c=("f32", [2.0])),
    case("max.s32 %d, %a, %b;", "s32", [2], a=("s32", [-1]), b=("s32", [2])),
    case("max.relu.s32 %d, %a, %b;", "s32", [0], a=("s32", [-1]), b=("s32", [-2])),
    case("min.u32 %d, %a, %b;", "u32", [2], a=("u32", [0xFFFF_FFFF]), b=("u32", [2])),
    case("min.s16x2 %d, %a, %b;", "b32", [0xFFFF_0001], a=("b32", [0xFFFF_0002]), b=("b32", [0x0001_0001])),
    case("max.bf16x2 %d, %a, %b;", "b32", [bpair(3, -1)], a=("b32", bpair(3, -2)), b=("b32", bpair(1, -1))),
    case("min.f64 %d, %a, %b;", "f64", [-1.0], a=("f64", [-1.0]), b=("f64", [2.0])),
    case("rcp.approx.f32 %d, %a;", "f32", [0.25], a=("f32", [4.0])),
    case("rcp.rn.f64 %d, %a;", "f64", [0.25], a=("f64", [4.0])),
    case("sqrt.rn.f32 %d, %a;", "f32", [3.0], a=("f32", [9.0])),
    case("rsqrt.approx.ftz.f32 %d, %a;", "f32", [0.5], a=("f32", [4.0])),
    case("sin.approx.f32 %d, %a;", "f32", [0.0], a=("f32", [0.0])),
    case("cos.approx.f32 %d, %a;", "f32", [1.0], a=("f32", [0.0])),
    case("lg2.approx.f32 %d, %a;", "f32", [3.0, -INF], a=("f32", [8.0, 0.0])),
    case("ex2.approx.ftz.f32 %d, %a;", "f32", [8.0, 0.0], a=("f32", [3.0, -INF])),
    case("ex2.approx.f16x2 %d, %a;", "b32", [pair(8, 2)], a=("b32", pair(3, 1))),
    case("tanh.approx.f32 %d, %a;", "f32", [1.0, 0.0], a=("f32", [INF, 0.0])),
    case("copysign.f32 %d, %a, %b;", "f32", [-2.0], a=("f32", [-1.0]), b=("f32", [2.0])),
    case("testp.finite.f32 %d, %a;", "pred", [1, 0, 0], a=("f32", [1.0, INF, NAN])),
    case("testp.infinite.f32 %d, %a;", "pred", [0, 1], a=("f32", [1.0, INF])),
    case("testp.number.f32 %d, %a;", "pred", [1, 0], a=("f32", [INF, NAN])),
    case("testp.notanumber.f64 %d, %a;", "pred", [0, 1], a=("f64", [INF, NAN])),
    case("testp.normal.f32 %d, %a;", "pred", [1, 0], a=("f32", [1.0, TINY])),
    case("testp.subnormal.f32 %d, %a;", "pred", [0, 1], a=("f32", [1.0, TINY])),
    case("testp.normal.f32 %d, %a;", "pred", [1, 1, 0, 0], a=("f32", [0.0, -0.0, INF, NAN])),
    case("testp.normal.f64 %d, %a;", "pred", [1, 0], a=("f64", [0.0, 2.0**-1074])),
    case("abs.f32 %d, %a;", "b32", [PTX_NAN] * 2, a=("b32", [0x7FC0_0000, 0xFFC0_0000])),
    case("neg.f32 %d, %a;", "b32", [PTX_NAN], a=("b32", [0x7FC0_0000])),
    case("neg.ftz.f32 %d, %a;", "b32", [PTX_NAN], a=("b32", [0x7FC0_0000])),
    case("neg.f16x2 %d, %a;", "b32", [0x7FFF_7FFF], a=("b32", [0x7FFF_7FFF])),
    case("abs.f16 %d, %a;", "b16", [0x7FFF], a=("b16", [0xFE00])),
    case("abs.bf16x2 %d, %a;", "b32", [0x7FFF_3F80], a=("b32", [0xFFC0_BF80])),
    case("neg.f64 %d, %a;", "f64", [-1.5, -0.0], a=("f64", [1.5, 0.0])),
    case("neg.f64 %d, %a;", "b64", [0x7FF8 << 48], a=("b64", [0x7FF8 << 48])),
    case("add.sat.f32 %d, %a, %b;", "b32", [0], a=("f32", [-0.0]), b=("f32", [-0.0])),
    case("mul.sat.f32 %d, %a, %b;", "b32", [0, 0], a=("f32", [-0.0, NAN]), b=("f32", [1.0])),
    case("add.sat.f16x2 %d, %a, %b;", "b32", [0x3C00_0000], a=("b32", [0x4000_8000]), b=("b32", [0x0000_8000])),
]  # fmt: skip


@pytest.mark.parametrize("one", CASES)
def test_floating(one: Case):
    """A floating-point instruction gives the bits the manual says."""
    check(one)


def nearest(exact: Fraction) -> np.float32:
    """A rational number as the nearest f32, by trying the neighbours of a guess."""
    guess = np.float32(float(exact))
    near = [
        np.nextafter(guess, np.float32(-np.inf)),
        guess,
        np.nextafter(guess, np.float32(np.inf)),
    ]
    return min(near, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1))


@pytest.mark.parametrize("seed", range(6))
def test_fused_multiply_add_is_rounded_once(seed: int):
    """fma.rn.f32 is the exact product and sum rounded once, for operands that cancel or tie."""
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(1 << 23, 1 << 24, 32).astype(np.float32) for _ in range(2))
    c = np.ldexp(rng.integers(1, 1 << 24, 32).astype(np.float32), rng.integers(-30, 60, 32))
    c = np.where(rng.random(32) < 0.5, -a * b, c).astype(np.float32)
    made = Case(
        "fma.rn.f32 %d, %a, %b, %c;",
        "f32",
        [],
        {"a": ("f32", list(a)), "b": ("f32", list(b)), "c": ("f32", list(c))},
    )
    exact = [
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        for x, y, z in zip(a, b, c, strict=True)
    ]
    assert [float(nearest(e)) for e in exact] == evaluate(made).astype(float).tolist()
