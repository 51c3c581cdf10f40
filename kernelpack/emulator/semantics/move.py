"""Moves and addresses (PTX ISA 9.7.9): mov, cvta, isspacep, mapa, getctarank, createpolicy."""

import numpy as np

from kernelpack.emulator.machine.cluster import RANK_SHIFT
from kernelpack.emulator.machine.lanes import WIDTH, Lanes
from kernelpack.emulator.ptx.syntax import Vector
from kernelpack.emulator.semantics.spaces import SPACE_OF, WINDOW_SHIFT, WINDOWS
from kernelpack.emulator.semantics.table import FLOATS, INTEGERS, RAW, SPACES, Form, Handler, lanes

_TYPES = ("pred", *RAW, *INTEGERS, *FLOATS, "f16x2", "bf16x2", "f32x2")


def _parts(form: Form, position: int) -> str:
    """The type of each element of a vector operand: the form's width shared out."""
    return f"b{form.bits // form.length(position)}"


def _mov_operands(form: Form) -> tuple[str, ...]:
    to, source = form.instruction.operands
    if isinstance(to, Vector):
        return ("={" + _parts(form, 0) + "}", form.type)
    if isinstance(source, Vector):
        return ("=" + form.type, "{" + _parts(form, 1) + "}")
    kind = "pred" if form.type == "pred" else f"b{form.bits}"
    return ("=" + kind, kind)


def same(a: Lanes) -> Lanes:
    """D = a."""
    return a


@lanes("mov", "9.7.9.3", operands=_mov_operands, types=_TYPES)
def move(form: Form) -> Handler:
    """D = a; a vector is packed into a register or unpacked from it, first element lowest."""
    to, source = form.instruction.operands
    if isinstance(to, Vector):
        return unpacker(form.bits, len(to.items))
    if isinstance(source, Vector):
        return packer(form.bits, len(source.items))
    return same


def unpacker(bits: int, count: int) -> Handler:
    """One register → its parts, lowest first."""
    part = np.dtype(f"u{bits // count // 8}")

    def unpack(a: Lanes) -> list[Lanes]:
        parts = np.ascontiguousarray(a).view(part).reshape(WIDTH, count)
        return [np.ascontiguousarray(parts[:, k]) for k in range(count)]

    return unpack


def packer(bits: int, count: int) -> Handler:
    """Parts, lowest first → one register."""
    whole, part = np.dtype(f"u{min(bits, 64) // 8}"), np.dtype(f"u{bits // count // 8}")

    def pack(parts: list[Lanes]) -> Lanes:
        joined = np.empty((WIDTH, count), part)
        for k, one in enumerate(parts):
            joined[:, k] = one
        seen = joined.view(whole)
        return seen if bits == 128 else seen.reshape(WIDTH)

    assert bits % count == 0
    return pack


_SPACES = (*SPACES, "shared::cta", "shared::cluster", "param::entry")


@lanes("cvta cvta.to", "9.7.9.20", operands=("=T", "T"), types=("u32", "u64"), flags=_SPACES)
def convert_address(form: Form) -> Handler:
    """D = the generic address of an address in a space; with `.to` the other way."""
    window = WINDOWS.get(form.space, 0)
    if not window:
        return same
    base = np.uint64(window)
    if form.type != "u64":
        raise form.unsupported("32-bit generic addresses")
    if form.instruction.modifiers[0] == "to":
        return lambda a: a - base
    return lambda a: a + base


@lanes("isspacep", "9.7.9.19", operands=("=pred", "u64"), flags=_SPACES)
def is_in_space(form: Form) -> Handler:
    """P = whether a generic address lies in a space."""
    if form.has("shared::cta"):
        raise form.unsupported("`isspacep.shared::cta`")
    space = form.space

    def test(a: Lanes) -> Lanes:
        window = a >> np.uint64(WINDOW_SHIFT)
        if space in WINDOWS:
            equal: Lanes = window == np.uint64(WINDOWS[space] >> WINDOW_SHIFT)
            return equal
        inside = np.ones(len(a), bool)
        for other in SPACE_OF:
            inside &= window != np.uint64(other)
        return inside if space == "global" else np.zeros(len(a), bool)

    return test


_RANK = np.uint64(0xFF << RANK_SHIFT)


@lanes(
    "mapa",
    "9.7.9.22",
    operands=("=T", "T", "u32"),
    types=("u32", "u64"),
    flags=("shared::cluster",),
)
def map_address(_form: Form) -> Handler:
    """D = the address in the shared memory of CTA b that corresponds to a."""

    def call(a: Lanes, b: Lanes) -> Lanes:
        clear = a & a.dtype.type(~_RANK & np.uint64(np.iinfo(a.dtype).max))
        mapped: Lanes = clear | (b.astype(a.dtype) << a.dtype.type(RANK_SHIFT))
        return mapped

    return call


@lanes(
    "getctarank",
    "9.7.9.23",
    operands=("=u32", "T"),
    types=("u32", "u64"),
    flags=("shared::cluster",),
)
def rank_of(_form: Form) -> Handler:
    """D = the rank of the CTA whose shared memory holds a."""
    return lambda a: ((a >> a.dtype.type(RANK_SHIFT)) & a.dtype.type(0xFF)).astype(np.uint32)


_POLICIES = ("L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged")


@lanes(
    "createpolicy.fractional createpolicy.range",
    "9.7.9.18",
    operands=("=b64", "~?", "~?", "~?"),
    types=("b64",),
    flags=(*_POLICIES, "global"),
)
def create_policy(_form: Form) -> Handler:
    """D = a cache policy: a word without meaning here."""
    return lambda: np.zeros(WIDTH, np.uint64)
