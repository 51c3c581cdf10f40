"""Logic and shifts (PTX ISA 9.7.8)."""

from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.machine.lanes import Lanes, constant
from kernelpack.emulator.ptx.syntax import Immediate
from kernelpack.emulator.semantics.table import WORDS, Form, Handler, lanes

_LOGIC = ("pred", "b16", "b32", "b64")
_BITS = ("b16", "b32", "b64")


@lanes("and", "9.7.8.1", operands=("=T", "T", "T"), types=_LOGIC)
def conjunction(_form: Form) -> Handler:
    """D = a & b."""
    return np.bitwise_and


@lanes("or", "9.7.8.2", operands=("=T", "T", "T"), types=_LOGIC)
def disjunction(_form: Form) -> Handler:
    """D = a | b."""
    return np.bitwise_or


@lanes("xor", "9.7.8.3", operands=("=T", "T", "T"), types=_LOGIC)
def exclusive(_form: Form) -> Handler:
    """D = a ^ b."""
    return np.bitwise_xor


@lanes("not", "9.7.8.4", operands=("=T", "T"), types=_LOGIC)
def complement(_form: Form) -> Handler:
    """D = ~a."""
    return np.bitwise_not


@lanes("cnot", "9.7.8.5", operands=("=T", "T"), types=_BITS)
def logical_not(_form: Form) -> Handler:
    """D = 1 where a is 0, else 0."""
    return lambda a: (a == 0).astype(a.dtype)


@cache
def _terms(table: int) -> tuple[int, ...]:
    return tuple(k for k in range(8) if table >> k & 1)


def look_up(table: int, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Any function of three bits: bit 4a + 2b + c of the table."""
    result = np.zeros_like(a)
    for term in _terms(table):
        product = a if term & 4 else ~a
        product = product & (b if term & 2 else ~b)
        result |= product & (c if term & 1 else ~c)
    return result


_SHORT = {
    0x80: lambda a, b, c: a & b & c,
    0xFE: lambda a, b, c: a | b | c,
    0x96: lambda a, b, c: a ^ b ^ c,
    0xEA: lambda a, b, c: a & b | c,
    0xF8: lambda a, b, c: b & c | a,
    0x78: lambda a, b, c: b & c ^ a,
    0xC8: lambda a, b, c: (a | c) & b,
    0xE0: lambda a, b, c: (b | c) & a,
    0xA8: lambda a, b, c: (a | b) & c,
    0x6A: lambda a, b, c: a & b ^ c,
}
"""The functions compilers emit most, in as few steps as they need."""


@lanes("lop3", "9.7.8.6", operands=("=b32", "b32", "b32", "b32", "#"), types=("b32",))
def three_input(form: Form) -> Handler:
    """D = the function of a, b, c whose table is the last operand."""
    table = form.constant(4)
    return _SHORT.get(table) or (lambda a, b, c: look_up(table, a, b, c))


def _known_amount(form: Form) -> Lanes | None:
    """How far a shift by a constant shifts, as lanes of its type, where it is below the width."""
    by = form.instruction.operands[2]
    if not isinstance(by, Immediate) or not 0 <= by.value < form.bits:
        return None
    kind = "i" if form.type[0] == "s" else "u"
    return constant(by.value, form.bits).view(f"{kind}{form.bits // 8}")


@lanes("shl", "9.7.8.8", operands=("=T", "T", "u32"), types=_BITS)
def shift_left(form: Form) -> Handler:
    """D = a << b; 0 from the width on."""
    bits = form.bits
    known = _known_amount(form)
    if known is not None:
        return lambda a, _b: a << known

    def shift(a: Lanes, b: Lanes) -> Lanes:
        inside = np.minimum(b, np.uint32(bits - 1)).astype(a.dtype)
        shifted: Lanes = np.where(b < bits, a << inside, a.dtype.type(0))
        return shifted

    return shift


@lanes(
    "shr",
    "9.7.8.9",
    operands=("=T", "T", "u32"),
    types=(*_BITS, *WORDS),
)
def shift_right(form: Form) -> Handler:
    """D = a >> b; .sN fills with the sign; a shift past the width is clamped to it."""
    bits = form.bits
    top = np.uint32(bits - 1)
    known = _known_amount(form)
    if known is not None:
        return lambda a, _b: a >> known
    if form.type[0] == "s":
        return lambda a, b: a >> np.minimum(b, top).astype(a.dtype)

    def shift(a: Lanes, b: Lanes) -> Lanes:
        inside = np.minimum(b, top).astype(a.dtype)
        shifted: Lanes = np.where(b < bits, a >> inside, a.dtype.type(0))
        return shifted

    return shift


@lanes(
    "shf",
    "9.7.8.7",
    operands=("=b32", "b32", "b32", "u32"),
    types=("b32",),
    flags=("l", "r", "clamp", "wrap"),
)
def funnel_shift(form: Form) -> Handler:
    """D = 32 bits of b:a shifted left (the upper half) or right (the lower half) by c."""

    def amount(c: Lanes) -> Lanes:
        return (c & np.uint32(31) if form.has("wrap") else np.minimum(c, np.uint32(32))).astype(
            np.uint64
        )

    def both(a: Lanes, b: Lanes) -> Lanes:
        return a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))

    if form.has("l"):
        return lambda a, b, c: ((both(a, b) << amount(c)) >> np.uint64(32)).astype(np.uint32)
    return lambda a, b, c: (both(a, b) >> amount(c)).astype(np.uint32)


_PRMT_MODES = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")


@lanes("prmt", "9.7.9.7", operands=("=b32", "b32", "b32", "b32"), types=("b32",), flags=_PRMT_MODES)
def permute_bytes(form: Form) -> Handler:
    """D = four bytes chosen from the eight of b:a; bit 3 of a selector repeats its byte's sign."""
    mode = form.one_of(_PRMT_MODES)

    def permute(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        both = np.empty((len(a), 2), np.uint32)
        both[:, 0], both[:, 1] = a, b
        first = c[0]
        if np.count_nonzero(c != first):
            select = _selectors(mode, c)
            chosen = np.take_along_axis(both.view(np.uint8), select & 7, 1)
        else:
            select = _selector(mode, int(first))
            chosen = both.view(np.uint8).take(select & 7, 1)
        if np.count_nonzero(select & 8):
            signs = np.where(chosen & 0x80, np.uint8(0xFF), np.uint8(0))
            chosen = np.where(select & 8, signs, chosen)
        return chosen.view(np.uint32).reshape(len(a))

    return permute


@lru_cache(maxsize=256)
def _selector(mode: str, c: int) -> NDArray[np.intp]:
    """Which byte each result byte takes, where all lanes have one selector: mostly."""
    found: NDArray[np.intp] = _selectors(mode, np.array([c], np.uint32))[0]
    return found


def _selectors(mode: str, c: Lanes) -> Lanes:
    """Which byte each result byte takes, shape (32, 4)."""
    if not mode:
        return ((c[:, None] >> np.array([0, 4, 8, 12], np.uint32)) & np.uint32(15)).astype(np.intp)
    low = (c & np.uint32(3)).astype(np.intp)[:, None]
    k = np.arange(4)
    return {
        "f4e": low + k,
        "b4e": (low - k) & 7,
        "rc8": low + 0 * k,
        "ecl": np.maximum(k, low),
        "ecr": np.minimum(k, low),
        "rc16": 2 * (low & 1) + k % 2,
    }[mode]
