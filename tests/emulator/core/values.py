"""Bits of every type for tests: those at which something changes, and random ones."""

import random

from kernelpack.emulator.ptx.syntax import BITS

_F32 = (
    *(0x0000_0000, 0x8000_0000, 0x3F80_0000, 0xBF80_0000, 0x3F00_0000, 0x3FC0_0000, 0x4020_0000),
    *(0x7F80_0000, 0xFF80_0000, 0x7FFF_FFFF, 0xFFC0_0001, 0x7F80_0001, 0x7F7F_FFFF, 0xFF7F_FFFF),
    *(0x0000_0001, 0x8000_0001, 0x007F_FFFF, 0x0080_0000, 0x477F_E000, 0x477F_EFFF, 0x477F_F000),
    *(0x3380_0000, 0x3300_0000, 0x3300_0001, 0x3880_0000, 0x387F_FFFF, 0x43E0_0000, 0x43E8_0000),
    *(0x4F00_0000, 0x4F80_0000, 0xCF00_0000, 0x5F00_0000, 0x5F80_0000, 0xDF00_0000, 0x4EFF_FFFF),
)
_F64 = (
    *(0, 1 << 63, 0x3FF0 << 48, 0xBFF0 << 48, 0x3FE0 << 48, 0x3FF8 << 48, 0x7FEF_FFFF_FFFF_FFFF),
    *(1, 0x000F_FFFF_FFFF_FFFF, 0x0010 << 48, 0x3FF0_0000_1000_0000, 0x3FF0_0000_3000_0000),
    *(0x41DF_FFFF_FFC0_0000, 0x43E0 << 48, 0x43F0 << 48, 0xC3E0 << 48, 0x36A0 << 48, 0x3690 << 48),
)
_F64_NOT_FINITE = (0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, 0xFFF4_0000_2000_0001)


def bits_of(kind: str, draw: random.Random, *, finite: bool = False) -> int:
    """The bits of a value of a type; `finite`: no infinity and no NaN of f64."""
    if kind == "pred":
        return draw.getrandbits(1)
    width = BITS[kind]
    if kind == "f32":
        return _single(draw)
    if kind == "f64":
        return _double(draw, finite=finite)
    if kind in ("f32x2", "b64") and draw.random() < 0.5:
        return _single(draw) | _single(draw) << 32
    if kind == "b32" and draw.random() < 0.5:
        return _single(draw)
    return _integer(width, draw)


def _integer(width: int, draw: random.Random) -> int:
    """Ends of ranges, small numbers, and any bits."""
    ends = (0, 1, 2, 7, 31, 32, 33, 63, 64, 255, 1 << width - 1, (1 << width - 1) - 1, -1, -2, -128)
    chosen = draw.choice((draw.choice(ends), draw.getrandbits(width), draw.randrange(-9, 40)))
    return chosen & ((1 << width) - 1)


def _single(draw: random.Random) -> int:
    """An f32: an end of a range, near to one, halfway between shorter numbers, or any bits."""
    how = draw.randrange(5)
    if how == 0:
        return draw.choice(_F32)
    if how == 1:
        return (draw.choice(_F32) + draw.randrange(-2, 3)) & 0xFFFF_FFFF
    near_one = draw.getrandbits(1) << 31 | draw.randrange(110, 145) << 23 | draw.getrandbits(23)
    if how == 2:
        return near_one & ~((1 << draw.choice((11, 12, 13, 15, 16, 19, 20, 21))) - 1)
    return near_one if how == 3 else draw.getrandbits(32)


def _double(draw: random.Random, *, finite: bool) -> int:
    how = draw.randrange(4)
    if how == 0:
        return draw.choice(_F64 if finite else (*_F64, *_F64_NOT_FINITE))
    near_one = draw.getrandbits(1) << 63 | draw.randrange(990, 1060) << 52 | draw.getrandbits(52)
    if how == 1:
        return near_one & ~((1 << draw.choice((28, 29, 30, 40, 42))) - 1)
    if how == 2 or finite:
        return near_one
    return draw.getrandbits(64)
