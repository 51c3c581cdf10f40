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
    """What is left of a; its sign is that of a. All ones for a division by zero."""
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


def carry_operands(form: Form) -> tuple[str, ...]:
    """The operands of the arithmetic instructions."""
    return ("=T",) + ("T",) * (len(form.instruction.operands) - 1)


@lanes("popc", "9.7.1.15", operands=("=u32", "T"), types=("b32", "b64"))
def population(_form: Form) -> Handler:
    """D = how many bits of a are set."""
    return lambda a: np.bitwise_count(a).astype(np.uint32)


def highest_bit(a: Lanes) -> Lanes:
    """The position of the highest set bit of unsigned lanes; all ones when there is none."""
    if a.itemsize == 8:
        upper = (a >> np.uint64(32)).astype(np.uint32)
        lower = highest_bit(a.astype(np.uint32))
        return np.where(upper != 0, highest_bit(upper) + np.uint32(32), lower)
    exponent = np.frexp(a.astype(np.float64))[1]  # exact; 0 for 0, one more than the position else
    return (exponent - 1).astype(np.uint32)


@lanes("clz", "9.7.1.16", operands=("=u32", "T"), types=("b32", "b64"))
def leading_zeros(form: Form) -> Handler:
    """D = the zeros above the highest set bit."""
    top = np.uint32(form.bits - 1)
    return lambda a: np.where(a == 0, np.uint32(top + 1), top - highest_bit(a))


@lanes(
    "bfind", "9.7.1.17", operands=("=u32", "T"), types=("u32", "s32", "u64", "s64"),
    flags=("shiftamt",),
)  # fmt: skip
def find_highest(form: Form) -> Handler:
    """D = the position of the highest bit that is not a sign bit, from the bottom or the top."""
    top = np.uint32(form.bits - 1)

    def find(a: Lanes) -> Lanes:
        bits = np.where(a < 0, ~a, a) if a.dtype.kind == "i" else a
        found = highest_bit(bits.view(np.dtype(f"u{a.dtype.itemsize}")))
        none = found == 0xFFFFFFFF
        return np.where(none, found, top - found) if form.has("shiftamt") else found

    return find


@lanes("fns", "9.7.1.18", operands=("=b32", "b32", "b32", "s32"), types=("b32",))
def find_nth_set(_form: Form) -> Handler:
    """D = the position of the n-th set bit of the mask, counted from a base, up or down."""

    def one(mask: int, base: int, offset: int) -> int:
        if offset == 0:
            return base if mask >> base & 1 else 0xFFFFFFFF
        step = 1 if offset > 0 else -1
        left = abs(offset)
        position = base
        while 0 <= position < 32:
            if mask >> position & 1:
                left -= 1
                if left == 0:
                    return position
            position += step
        return 0xFFFFFFFF

    return lambda mask, base, offset: np.array(
        [one(int(m), int(b), int(o)) for m, b, o in zip(mask, base, offset, strict=True)],
        np.uint32,
    )


@lanes("brev", "9.7.1.19", operands=("=T", "T"), types=("b32", "b64"))
def reverse_bits(form: Form) -> Handler:
    """D = a with its bits in reverse order."""

    def reverse(a: Lanes) -> Lanes:
        octets = a.view(np.uint8).reshape(len(a), form.bits // 8)[:, ::-1]
        bits = np.unpackbits(octets, axis=1, bitorder="big")[:, ::1]
        flipped = np.packbits(bits, axis=1, bitorder="little")
        return np.ascontiguousarray(flipped).view(a.dtype).reshape(len(a))

    return reverse


def _field(position: Lanes, length: Lanes) -> tuple[Lanes, Lanes]:
    """Position and length of a bit field: the low 8 bits of each."""
    return (position & np.uint32(255)).astype(np.uint64), (length & np.uint32(255)).astype(
        np.uint64
    )


def _ones(length: Lanes) -> Lanes:
    """Values of u64 with `length` low bits set; all of them from 64 on."""
    one = np.uint64(1)
    return np.where(length >= 64, ~np.uint64(0), (one << np.minimum(length, np.uint64(63))) - one)


@lanes("bfe", "9.7.1.20", operands=("=T", "T", "u32", "u32"), types=("u32", "s32", "u64", "s64"))
def extract_field(form: Form) -> Handler:
    """D = a bit field of a, filled with zeros or, signed, with its top bit."""
    bits = form.bits
    unsigned = np.dtype(f"u{bits // 8}")

    def extract(a: Lanes, position: Lanes, length: Lanes) -> Lanes:
        at, count = _field(position, length)
        whole = a.view(unsigned).astype(np.uint64)
        field = np.where(at >= 64, np.uint64(0), whole >> np.minimum(at, np.uint64(63)))
        field &= _ones(count)
        if a.dtype.kind == "i":
            sign_at = np.minimum(at + count - np.uint64(1), np.uint64(bits - 1))
            sign = (whole >> sign_at) & np.uint64(1)
            kept = np.minimum(
                count,
                np.where(
                    at < bits, np.uint64(bits) - np.minimum(at, np.uint64(bits)), np.uint64(0)
                ),
            )
            fill = (count > 0) & (sign == 1)
            field = np.where(fill, field | ~_ones(kept), field)
        return field.astype(unsigned).view(a.dtype)

    return extract


@lanes("bfi", "9.7.1.21", operands=("=T", "T", "T", "u32", "u32"), types=("b32", "b64"))
def insert_field(form: Form) -> Handler:
    """D = b with the low bits of a put into a field of it."""
    unsigned = np.dtype(f"u{form.bits // 8}")

    def insert(a: Lanes, b: Lanes, position: Lanes, length: Lanes) -> Lanes:
        at, count = _field(position, length)
        shift = np.minimum(at, np.uint64(63))
        mask = np.where(at >= 64, np.uint64(0), _ones(count) << shift)
        value = (b.astype(np.uint64) & ~mask) | ((a.astype(np.uint64) << shift) & mask)
        return value.astype(unsigned)

    return insert


@lanes("bmsk", "9.7.1.23", operands=("=b32", "u32", "u32"), types=("b32",), flags=("clamp", "wrap"))
def bit_mask(form: Form) -> Handler:
    """D = a mask of b bits from bit a on; both clamped to 32 or taken modulo 32."""

    def mask(a: Lanes, b: Lanes) -> Lanes:
        if form.has("wrap"):
            a, b = a & np.uint32(31), b & np.uint32(31)
        at = np.minimum(a, np.uint32(32)).astype(np.uint64)
        count = np.minimum(b, np.uint32(32)).astype(np.uint64)
        return ((_ones(count) << at) & np.uint64(0xFFFFFFFF)).astype(np.uint32)

    return mask


@lanes(
    "szext", "9.7.1.22", operands=("=T", "T", "u32"), types=("u32", "s32"), flags=("clamp", "wrap")
)
def extend_from(form: Form) -> Handler:
    """D = the low b bits of a, extended by zeros or by their sign."""

    def extend(a: Lanes, b: Lanes) -> Lanes:
        count = b & np.uint32(31) if form.has("wrap") else np.minimum(b, np.uint32(32))
        wide = a.view(np.uint32).astype(np.uint64) & _ones(count.astype(np.uint64))
        if a.dtype.kind == "i":
            top = (count > 0) & (
                (wide >> (np.maximum(count, np.uint32(1)) - 1).astype(np.uint64)) & np.uint64(1)
                == 1
            )
            wide = np.where(top, wide | ~_ones(count.astype(np.uint64)), wide)
        return wide.astype(np.uint32).view(a.dtype)

    return extend


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
