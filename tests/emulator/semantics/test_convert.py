# ruff: noqa: E501  (a table of programs: one a line)
"""Conversions: ranges, roundings, NaN; the narrow formats are tested with the number formats."""

import numpy as np
import pytest

from kernelpack.emulator.faults import UnsupportedError
from tests.emulator.semantics.bench import Case, case, check

NAN, INF = float("nan"), float("inf")
HALF_PLUS = 1 + 2.0**-11 + 2.0**-23

CASES = [
    case("cvt.u64.u32 %d, %a;", "u64", [0xFFFF_FFFF], a=("u32", [-1])),
    case("cvt.s64.s32 %d, %a;", "s64", [-1], a=("s32", [-1])),
    case("cvt.s32.s8 %d, %a;", "s32", [-128], a=("s8", [0x80])),
    case("cvt.u16.u32 %d, %a;", "u16", [0x5678], a=("u32", [0x1234_5678])),
    case("cvt.sat.u8.s32 %d, %a;", "u8", [0, 255, 7], a=("s32", [-5, 300, 7])),
    case("cvt.sat.s16.s32 %d, %a;", "s16", [-32768, 32767], a=("s32", [-99999, 99999])),
    case("cvt.rn.f32.s32 %d, %a;", "f32", [2.0**24, -3.0], a=("s32", [2**24 + 1, -3])),
    case("cvt.rz.f32.u32 %d, %a;", "f32", [2.0**32 - 2.0**8], a=("u32", [0xFFFF_FFFF])),
    case("cvt.rn.f64.u64 %d, %a;", "f64", [2.0**64], a=("u64", [0xFFFF_FFFF_FFFF_FFFF])),
    case("cvt.rn.f16.s32 %d, %a;", "f16", [2048.0, -7.0], a=("s32", [2049, -7])),
    case("cvt.rn.bf16.u32 %d, %a;", "bf16", [256.0], a=("u32", [257])),
    case("cvt.rzi.s32.f32 %d, %a;", "s32", [-1, 2**31 - 1, 0, -(2**31)], a=("f32", [-1.9, INF, NAN, -INF])),
    case("cvt.rni.s32.f32 %d, %a;", "s32", [2, 2, 4], a=("f32", [1.5, 2.5, 3.5])),
    case("cvt.rmi.s32.f32 %d, %a;", "s32", [-2], a=("f32", [-1.1])),
    case("cvt.rpi.u32.f32 %d, %a;", "u32", [2, 0], a=("f32", [1.1, -5.0])),
    case("cvt.rzi.u64.f64 %d, %a;", "u64", [2**63, 0xFFFF_FFFF_FFFF_FFFF], a=("f64", [2.0**63, 1e30])),
    case("cvt.rzi.s64.f32 %d, %a;", "s64", [-(2**40)], a=("f32", [-(2.0**40)])),
    case("cvt.rzi.s32.f16 %d, %a;", "s32", [-2], a=("f16", [-2.75])),
    case("cvt.rzi.u16.bf16 %d, %a;", "u16", [3], a=("bf16", [3.5])),
    case("cvt.f64.f32 %d, %a;", "f64", [1.5], a=("f32", [1.5])),
    case("cvt.rn.f32.f64 %d, %a;", "f32", [np.float32(0.1)], a=("f64", [0.1])),
    case("cvt.rz.f32.f64 %d, %a;", "f32", [1.0], a=("f64", [1 + 2.0**-24 + 2.0**-30])),
    case("cvt.rp.f32.f64 %d, %a;", "f32", [1 + 2.0**-23], a=("f64", [1 + 2.0**-40])),
    case("cvt.f32.f16 %d, %a;", "f32", [2.0**-24], a=("f16", [2.0**-24])),
    case("cvt.f32.bf16 %d, %a;", "f32", [-3.0], a=("bf16", [-3.0])),
    case("cvt.rn.f16.f32 %d, %a;", "f16", [1 + 2.0**-10, INF], a=("f32", [HALF_PLUS, 1e6])),
    case("cvt.rz.f16.f32 %d, %a;", "f16", [1.0], a=("f32", [HALF_PLUS])),
    case("cvt.rn.f16.f64 %d, %a;", "f16", [1 + 2.0**-10], a=("f64", [1 + 2.0**-11 + 2.0**-40])),
    case("cvt.rn.bf16.f32 %d, %a;", "bf16", [1.0, 1 + 2.0**-6], a=("f32", [1 + 2.0**-8, 1 + 3 * 2.0**-8])),
    case("cvt.rz.bf16.f32 %d, %a;", "bf16", [1.0], a=("f32", [1 + 2.0**-8 + 2.0**-9])),
    case("cvt.rn.relu.f16.f32 %d, %a;", "f16", [0.0, 2.0], a=("f32", [-2.0, 2.0])),
    case("cvt.rni.f32.f32 %d, %a;", "f32", [2.0, -2.0], a=("f32", [2.5, -1.5])),
    case("cvt.rmi.f32.f32 %d, %a;", "f32", [-2.0], a=("f32", [-1.5])),
    case("cvt.sat.f32.f32 %d, %a;", "f32", [0.0, 1.0, 0.0], a=("f32", [-1.0, 2.0, NAN])),
    case("cvt.rn.ftz.f16.f32 %d, %a;", "f16", [0.0], a=("f32", [1e-45])),
    case("cvt.rn.f16x2.f32 %d, %a, %b;", "b32", [0x4000_3C00], a=("f32", [2.0]), b=("f32", [1.0])),
    case("cvt.rn.bf16x2.f32 %d, %a, %b;", "b32", [0x4000_3F80], a=("f32", [2.0]), b=("f32", [1.0])),
    case("cvt.rn.relu.bf16x2.f32 %d, %a, %b;", "b32", [0x0000_3F80], a=("f32", [-2.0]), b=("f32", [1.0])),
    case("cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;", "b16", [0x7E38], a=("f32", [9999.0]), b=("f32", [1.0])),
    case("cvt.rn.satfinite.e5m2x2.f16x2 %d, %a;", "b16", [0x403C], a=("b32", [0x4000_3C00])),
    case("cvt.rn.f16x2.e4m3x2 %d, %a;", "b32", [0x4000_3C00, 0x7FFF_B800], a=("b16", [0x4038, 0xFFB0])),
    case("cvt.rn.relu.f16x2.e5m2x2 %d, %a;", "b32", [0x0000_7C00], a=("b16", [0xBC7C])),
    case("cvt.rn.f16x2.e2m1x2 %d, %a;", "b32", [0xB800_4600], a=("b8", [0x97])),
    case("cvt.rna.tf32.f32 %d, %a;", "b32", [0x3F80_2000], a=("f32", [1 + 2.0**-11])),
    case("cvt.rp.satfinite.ue8m0x2.f32 %d, %a, %b;", "b16", [0x8180], a=("f32", [3.0]), b=("f32", [1.5])),
    case("cvt.rn.bf16x2.ue8m0x2 %d, %a;", "b32", [0x4000_3F80], a=("b16", [0x807F])),
    case("cvt.rzi.u64.f64 %d, %a;", "u64", [2**63], a=("f64", [NAN])),
    case("cvt.rzi.s64.f32 %d, %a;", "s64", [-(2**63)], a=("f32", [NAN])),
    case("cvt.rzi.u64.f16 %d, %a;", "u64", [2**63], a=("f16", [NAN])),
    case("cvt.rzi.s32.f64 %d, %a;", "s32", [-(2**31)], a=("f64", [NAN])),
    case("cvt.rzi.u16.f64 %d, %a;", "u16", [2**15], a=("f64", [NAN])),
    case("cvt.rzi.u32.f32 %d, %a;", "u32", [0], a=("f32", [NAN])),
    case("cvt.f32.f16 %d, %a;", "b32", [0x7FFF_FFFF], a=("b16", [0x7E00])),
    case("cvt.f32.bf16 %d, %a;", "b32", [0x7FC0_0000], a=("b16", [0x7FC0])),
    case("cvt.f64.f32 %d, %a;", "b64", [0x7FF8 << 48], a=("b32", [0x7FC0_0000])),
    case("cvt.rn.f32.f64 %d, %a;", "b32", [0x7FC0_0000], a=("b64", [0x7FF8 << 48])),
    case("cvt.rn.ftz.f32.f64 %d, %a;", "b32", [0x7FFF_FFFF] * 2, a=("b64", [0x7FF8 << 48, 2**64 - 1])),
    case("cvt.rn.f16.f64 %d, %a;", "b16", [0x7E00, 0x7FFF], a=("b64", [0x7FF8 << 48, 2**63 - 1])),
    case("cvt.rn.bf16.f64 %d, %a;", "b16", [0x7FC0, 0xFFFF], a=("b64", [0x7FF8 << 48, 2**64 - 1])),
    case("cvt.rni.f32.f32 %d, %a;", "b32", [0x7FFF_FFFF], a=("b32", [0x7FC0_0000])),
    case("cvt.rmi.f32.f32 %d, %a;", "b32", [0x7FFF_FFFF], a=("b32", [0x7FC0_0000])),
    case("cvt.ftz.f32.f32 %d, %a;", "b32", [0x7FFF_FFFF, 0x8000_0000], a=("b32", [0x7FC0_0000, 0x8000_0001])),
    case("cvt.sat.f32.f32 %d, %a;", "b32", [0], a=("f32", [-0.0])),
    case("cvt.rn.sat.f16.f32 %d, %a;", "b16", [0, 0], a=("f32", [-0.0, NAN])),
    case("cvt.pack.sat.s8.s32.b32 %d, %a, %b, %c;", "b32", [0x4321_7F80, 0x8765_FE03], a=("s32", [300, -2]), b=("s32", [-200, 3]), c=("b32", [0x4321, 0x8765])),
    case("cvt.pack.sat.u8.s32.b32 %d, %a, %b, %c;", "b32", [0x4321_FF00], a=("s32", [300]), b=("s32", [-200]), c=("b32", [0xABCD_4321])),
    case("cvt.pack.sat.s4.s32.b32 %d, %a, %b, 0x123456;", "b32", [0x1234_5678], a=("s32", [7]), b=("s32", [-8])),
    case("cvt.pack.sat.u4.s32.b32 %d, %a, %b, 0xFF123456;", "b32", [0x1234_56F0], a=("s32", [16]), b=("s32", [-1])),
    case("cvt.pack.sat.s2.s32.b32 %d, %a, %b, 1;", "b32", [0b1_01_10], a=("s32", [9]), b=("s32", [-9])),
    case("cvt.pack.sat.u2.s32.b32 %d, %a, %b, 1;", "b32", [0b1_11_00], a=("s32", [9]), b=("s32", [-9])),
    case("cvt.pack.sat.s16.s32 %d, %a, %b;", "b32", [0x7FFF_8000], a=("s32", [1 << 20]), b=("s32", [-1 << 20])),
    case("cvt.pack.sat.u16.s32 %d, %a, %b;", "b32", [0xFFFF_0000], a=("s32", [1 << 20]), b=("s32", [-1])),
]  # fmt: skip


@pytest.mark.parametrize("one", CASES)
def test_convert(one: Case):
    """A conversion gives the bits the manual says."""
    check(one)


@pytest.mark.parametrize(
    "modifiers",
    ["u8.s32.b32", "sat.u8.s32", "sat.s16.s32.b32", "sat.u8.b32.s32", "sat.s32.s32.b32"],
)
def test_other_packs_are_refused(modifiers: str):
    with pytest.raises(UnsupportedError, match=r"cvt\.pack"):
        check(case(f"cvt.pack.{modifiers} %d, 1, 2, 3;", "b32", [0]).values[0])
