"""Bits of integers: how many, the highest, fields of them, masks (PTX ISA 9.7.1.15 to 9.7.1.23)."""

import numpy as np

from kernelpack.emulator.machine.lanes import Lanes
from kernelpack.emulator.semantics.table import Form, Handler, lanes


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
