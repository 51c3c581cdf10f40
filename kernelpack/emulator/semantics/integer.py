"""Integer arithmetic (PTX ISA 9.7.1)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelpack.emulator.machine.lanes import Lanes
from kernelpack.emulator.semantics.table import WORDS, Form, Handler, lanes

_WIDE = {
    "u16": np.uint32, "s16": np.int32, "u32": np.uint64, "s32": np.int64
}  # fmt: skip
_UP64 = {"u": np.uint64, "i": np.int64}
BINARY = ("=T", "T", "T")
TERNARY = ("=T", "T", "T", "T")
WRAPPING = ("=B", "B", "B")
"""Sums and low products have the same bits whatever the sign."""


def high_product(a: Lanes, b: Lanes) -> Lanes:
    """The upper half of a product, of the operands' type."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        wide = _UP64[a.dtype.kind]
        return ((a.astype(wide) * b.astype(wide)) >> wide(bits)).astype(a.dtype)
    products = [(int(x) * int(y)) >> 64 for x, y in zip(a, b, strict=True)]
    return np.array([p & (2**64 - 1) for p in products], np.uint64).view(a.dtype)


def wide_product(kind: str) -> Callable[[Lanes, Lanes], Lanes]:
    """The full product of 16- or 32-bit integers."""
    wide = _WIDE[kind]
    return lambda a, b: a.astype(wide) * b.astype(wide)


def divide(a: Lanes, b: Lanes) -> Lanes:
    """Quotient rounded toward zero; all ones for a division by zero."""
    if a.dtype.kind == "u" and np.count_nonzero(b) == b.size:
        return a // b
    safe = np.where(b == 0, a.dtype.type(1), b)
    if a.dtype.kind == "u":
        return np.where(b == 0, ~a.dtype.type(0), a // safe)
    magnitude = _magnitude(a) // _magnitude(safe)
    signed = magnitude.view(a.dtype)
    return np.where(b == 0, a.dtype.type(-1), np.where((a < 0) != (b < 0), -signed, signed))


def _magnitude(a: Lanes) -> Lanes:
    """|a| as an unsigned integer of the same width; right for the smallest integer too."""
    unsigned = a.view(np.dtype(f"u{a.dtype.itemsize}"))
    return np.where(a < 0, ~unsigned + unsigned.dtype.type(1), unsigned)


def remainder(a: Lanes, b: Lanes) -> Lanes:
    """The remainder; its sign is that of a. All ones for a division by zero."""
    rest: Lanes = a - divide(a, b) * b
    return np.where(b == 0, ~a.dtype.type(0), rest)


def saturated(function: Callable[[Lanes, Lanes], Lanes]) -> Handler:
    """A 32-bit signed operation clamped to its range."""
    limits = np.iinfo(np.int32)

    def clamp(a: Lanes, b: Lanes) -> Lanes:
        wide = function(a.astype(np.int64), b.astype(np.int64))
        return np.clip(wide, limits.min, limits.max).astype(np.int32)

    return clamp


def integer_add(form: Form) -> Handler:
    """D = a + b; `.sat` clamps s32."""
    return saturated(np.add) if form.has("sat") else np.add


def integer_subtract(form: Form) -> Handler:
    """D = a - b; `.sat` clamps s32."""
    return saturated(np.subtract) if form.has("sat") else np.subtract


def integer_multiply(form: Form) -> Handler:
    """D = the low half, the high half or all of a * b."""
    if form.has("wide"):
        return wide_product(form.type)
    if form.has("hi"):
        return high_product
    return np.multiply


def integer_multiply_add(form: Form) -> Handler:
    """D = a * b + c, with the half of the product the modifier names."""
    if form.has("sat", "cc"):
        raise form.unsupported("saturation or carry in mad")
    product: Callable[[Lanes, Lanes], Lanes] = integer_multiply(form)
    return lambda a, b, c: product(a, b) + c


def sum_operands(form: Form) -> tuple[str, ...]:
    """`add` and `sub` wrap around; `.sat` needs the sign."""
    return WRAPPING if form.type in WORDS and not form.has("sat") else BINARY


def product_operands(form: Form) -> tuple[str, ...]:
    """`mul` gives a value of twice the width with `.wide`."""
    if form.has("wide"):
        return ("=W", "T", "T")
    return WRAPPING if form.type in WORDS and not form.has("hi") else BINARY


def product_sum_operands(form: Form) -> tuple[str, ...]:
    """`mad` adds a value of twice the width with `.wide`."""
    if form.has("wide"):
        return ("=W", "T", "T", "W")
    return (*WRAPPING, "B") if form.type in WORDS and not form.has("hi", "sat") else TERNARY


@lanes("mul24", "9.7.1.5", operands=BINARY, types=("u32", "s32"), flags=("lo", "hi"))
def multiply_24(form: Form) -> Handler:
    """D = a part of the product of the operands' low 24 bits."""
    shift = 16 if form.has("hi") else 0

    def low(a: Lanes) -> Lanes:
        return (
            (a << 8 >> 8).astype(np.int64) if a.dtype.kind == "i" else a.astype(np.int64) & 0xFFFFFF
        )

    return lambda a, b: ((low(a) * low(b)) >> shift).astype(a.dtype)


@lanes("sad", "9.7.1.7", operands=TERNARY, types=WORDS)
def sum_of_difference(_form: Form) -> Handler:
    """D = c + |a - b|."""
    return lambda a, b, c: c + np.where(a < b, b - a, a - b)


@lanes("rem", "9.7.1.9", operands=BINARY, types=WORDS)
def integer_remainder(_form: Form) -> Handler:
    """D = a % b."""
    return remainder


def _bytes_of(a: Lanes, signed: bool) -> Any:  # noqa: ANN401
    """The four bytes of each lane as 64-bit integers, shape (32, 4)."""
    octets = np.ascontiguousarray(a).view(np.int8 if signed else np.uint8)
    return octets.reshape(len(a), 4).astype(np.int64)


@lanes("dp4a", "9.7.1.24", operands=("=s32", "b32", "b32", "s32"), types=("u32", "s32"))
def dot_of_bytes(form: Form) -> Handler:
    """D = c + the dot product of four bytes of a and b."""
    first, second = (kind == "s32" for kind in form.types)
    return lambda a, b, c: (
        ((_bytes_of(a, first) * _bytes_of(b, second)).sum(1) + c).astype(np.int64).astype(np.int32)
    )


@lanes(
    "dp2a",
    "9.7.1.25",
    operands=("=s32", "b32", "b32", "s32"),
    types=("u32", "s32"),
    flags=("lo", "hi"),
)
def dot_of_halves(form: Form) -> Handler:
    """D = c + the dot product of two halves of a and two bytes of b."""
    first, second = (kind == "s32" for kind in form.types)
    start = 2 if form.has("hi") else 0

    def dot(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        halves = np.ascontiguousarray(a).view(np.int16 if first else np.uint16)
        octets = _bytes_of(b, second)[:, start : start + 2]
        total: Lanes = (halves.reshape(len(a), 2).astype(np.int64) * octets).sum(1) + c
        return total.astype(np.int32)

    return dot
