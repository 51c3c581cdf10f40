"""Exact rounding of sums and products to f32, f16 and bf16.

A result is carried as `value + error`, two f64: the rounded sum and what the rounding lost
(Knuth's two-sum). Products of two f32 are exact in f64, so one rounding is left, done here.
"""

from collections.abc import Callable

import numpy as np

from kernelpack.emulator.machine.lanes import Lanes
from kernelpack.formats.dtype import DType

MODES = ("rn", "rz", "rm", "rp")
_BF16 = DType.BF16.numpy
_HALF_F32 = np.uint64(0x1000_0000)
_LOW_F32 = np.uint64(0x1FFF_FFFF)
_SMALLEST_NORMAL = 2.0**-126


def two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """A + b as the nearest f64 and the error; the error is 0 where the sum is not finite."""
    total = a + b
    rest = total - a
    error = (a - (total - rest)) + (b - rest)
    return total, np.where(np.isfinite(total), error, 0.0)


def narrow(value: Lanes, error: Lanes | float, mode: str) -> Lanes:
    """`value + error` rounded to f32 in a mode of PTX (`rn`, `rz`, `rm`, `rp`)."""
    if mode == "rn":
        return to_odd(value, error).astype(np.float32)
    near = value.astype(np.float32)
    back = near.astype(np.float64)
    above = (back > value) | ((back == value) & (np.asarray(error) < 0))
    below = (back < value) | ((back == value) & (np.asarray(error) > 0))
    down = np.nextafter(near, np.float32(-np.inf))
    up = np.nextafter(near, np.float32(np.inf))
    finite = np.isfinite(value)
    if mode == "rm":
        return np.where(above & finite, down, near)
    if mode == "rp":
        return np.where(below & finite, up, near)
    negative = np.signbit(value)
    near = np.where(above & ~negative & finite, down, near)
    return np.where(below & negative & finite, up, near)


def to_odd(value: Lanes, error: Lanes | float) -> Lanes:
    """`value + error` as an f64 whose last bit is set when it is not exact (von Neumann).

    Rounding that once more, to a format at least two bits shorter, gives the correct result.
    """
    error = np.asarray(error)
    if not error.any():
        return value
    bits = value.view(np.int64)
    toward = np.where((error > 0) == (value > 0), 1, -1)
    change = (error != 0) & (bits & 1 == 0)
    return np.where(change, bits + toward, bits).view(np.float64)


def multiply_add(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Fused a * b + c of f32, nearest even."""
    product = a.astype(np.float64) * b
    total = product + c
    result = total.astype(np.float32)
    hard = (total.view(np.uint64) & _LOW_F32) == _HALF_F32
    hard |= np.abs(total) < _SMALLEST_NORMAL
    if np.count_nonzero(hard):
        exact, error = two_sum(product, c.astype(np.float64))
        return narrow(exact, error, "rn")
    return result


def multiply_add_in(mode: str) -> Callable[[Lanes, Lanes, Lanes], Lanes]:
    """Fused a * b + c of f32 in a rounding mode."""
    if mode == "rn":
        return multiply_add

    def directed(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        total, error = two_sum(a.astype(np.float64) * b, c.astype(np.float64))
        return narrow(total, error, mode)

    return directed


def add_in(mode: str) -> Callable[[Lanes, Lanes], Lanes]:
    """A + b of f32 in a rounding mode."""
    if mode == "rn":
        return np.add

    def directed(a: Lanes, b: Lanes) -> Lanes:
        total, error = two_sum(a.astype(np.float64), b.astype(np.float64))
        return narrow(total, error, mode)

    return directed


def multiply_in(mode: str) -> Callable[[Lanes, Lanes], Lanes]:
    """A * b of f32 in a rounding mode."""
    if mode == "rn":
        return np.multiply
    return lambda a, b: narrow(a.astype(np.float64) * b, 0.0, mode)


def bf16_to_f32(bits: Lanes) -> Lanes:
    """bf16 bits → f32, exact."""
    return bits.astype(np.uint16, copy=False).view(_BF16).astype(np.float32)


def f32_to_bf16(value: Lanes) -> Lanes:
    """f32 → bf16 bits, nearest even; NaN becomes 0x7FFF."""
    return _canonical(np.asarray(value, np.float32).astype(_BF16).view(np.uint16), value)


def f32_to_f16(value: Lanes) -> Lanes:
    """f32 → f16 bits, nearest even; NaN becomes 0x7FFF."""
    return _canonical(np.asarray(value, np.float32).astype(np.float16).view(np.uint16), value)


def _canonical(bits: Lanes, value: Lanes) -> Lanes:
    """The bits of 16-bit numbers, changed to those of the one NaN where the value is NaN."""
    nan = np.isnan(value)
    if np.count_nonzero(nan):
        bits[nan] = 0x7FFF
    return bits


def f16_to_f32(bits: Lanes) -> Lanes:
    """f16 bits → f32, exact."""
    return bits.astype(np.uint16, copy=False).view(np.float16).astype(np.float32)


def f64_to_f32_odd(value: Lanes, error: Lanes | float) -> Lanes:
    """`value + error` as an f32 rounded to odd, for one more rounding to f16 or bf16."""
    exact = to_odd(value, error)
    cut = narrow(exact, 0.0, "rz")
    inexact = cut.astype(np.float64) != exact
    bits = cut.view(np.uint32)
    return np.where(inexact & np.isfinite(exact), bits | np.uint32(1), bits).view(np.float32)
