"""Comparison and selection (PTX ISA 9.7.6, 9.7.7)."""

from collections.abc import Callable

import numpy as np

from kernelpack.emulator.machine.lanes import Lanes
from kernelpack.emulator.ptx.syntax import Pair
from kernelpack.emulator.semantics.floating import flush
from kernelpack.emulator.semantics.rounding import bf16_to_f32, f16_to_f32
from kernelpack.emulator.semantics.table import FLOATS, INTEGERS, RAW, Form, Handler, lanes

Relation = Callable[[Lanes, Lanes], Lanes]
_ORDERED: dict[str, Relation] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu")
_COMBINE: dict[str, Relation] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
_RELATIONS = (*_ORDERED, *_UNORDERED, "num", "nan")
_TYPES = (*INTEGERS, *RAW, *FLOATS, "f16x2", "bf16x2")


def _nan(a: Lanes, b: Lanes) -> Lanes:
    return np.isnan(a) | np.isnan(b)


def relation(name: str, *, floating: bool) -> Relation:
    """The comparison PTX calls `name`; an ordered one is false for NaN, an unordered one true."""
    if name == "num":
        return lambda a, b: ~_nan(a, b)
    if name == "nan":
        return _nan
    if name in _UNORDERED:
        ordered = _ORDERED[name[:-1]]
        return lambda a, b: ordered(a, b) | _nan(a, b)
    if name == "ne" and floating:
        return lambda a, b: (a != b) & ~_nan(a, b)
    return _ORDERED[name]


def comparison(form: Form, kind: str) -> Relation:
    """The form's comparison of two operands of type `kind`."""
    name = next((m for m in form.instruction.modifiers if m in _RELATIONS), "")
    if not name:
        raise form.unsupported("no comparison")
    compare = relation(name, floating=kind in FLOATS)
    if kind == "bf16":
        return lambda a, b: compare(bf16_to_f32(a), bf16_to_f32(b))
    if form.has("ftz") and kind == "f32":
        return lambda a, b: compare(flush(a), flush(b))
    return compare


def _combined(form: Form) -> Relation | None:
    name = next((m for m in form.instruction.modifiers if m in _COMBINE), "")
    return _COMBINE[name] if name else None


_FLAGS = (*_RELATIONS, *_COMBINE, "ftz")


def _predicate_operands(form: Form) -> tuple[str, ...]:
    """A comparison for equality needs no sign; `q` is computed only where it is asked for."""
    value = "B" if form.has("eq", "ne") and form.type in INTEGERS else "T"
    base = ("=pred" if _has_one_result(form) else "=pred|pred", value, value)
    return (*base, "pred") if _combined(form) else base


def _has_one_result(form: Form) -> bool:
    return not isinstance(form.instruction.operands[0], Pair)


@lanes("setp", "9.7.6.2", operands=_predicate_operands, types=_TYPES, flags=_FLAGS)
def set_predicate(form: Form) -> Handler:
    """p|q = a ? b and its complement, each combined with c."""
    if form.type in ("f16x2", "bf16x2"):
        return _set_pair(form)
    compare = comparison(form, form.type)
    combine = _combined(form)
    if _has_one_result(form):
        if combine is None:
            return compare
        return lambda a, b, c: combine(compare(a, b), c)
    if combine is None:
        return lambda a, b: (r := compare(a, b), ~r)
    return lambda a, b, c: (combine(r := compare(a, b), c), combine(~r, c))


def _set_pair(form: Form) -> Handler:
    """Both halves of a pair compared: p for the low, q for the high."""
    decode = f16_to_f32 if form.type == "f16x2" else bf16_to_f32
    compare = comparison(form, "f32")
    combine = _combined(form)

    def both(a: Lanes, b: Lanes, c: Lanes | None = None) -> tuple[Lanes, Lanes]:
        shifts = (np.uint32(0), np.uint32(16))
        low, high = (
            compare(decode((a >> s).astype(np.uint16)), decode((b >> s).astype(np.uint16)))
            for s in shifts
        )
        if combine is not None and c is not None:
            low, high = combine(low, c), combine(high, c)
        return low, high

    return both


def _set_operands(form: Form) -> tuple[str, ...]:
    base = ("=T0", "T1", "T1")
    return (*base, "pred") if _combined(form) else base


@lanes("set", "9.7.6.1", operands=_set_operands, types=_TYPES, flags=_FLAGS)
def set_value(form: Form) -> Handler:
    """D = all ones (1.0 for a float) where the comparison holds, else 0."""
    to, kind = form.types
    if kind in ("f16x2", "bf16x2"):
        raise form.unsupported("`set` of pairs")
    compare, combine = comparison(form, kind), _combined(form)
    yes = (
        np.float32(1)
        if to == "f32"
        else {"u32": np.uint32(0xFFFFFFFF), "s32": np.int32(-1)}.get(to)
    )
    if yes is None:
        raise form.unsupported(f"`set` to `.{to}`")

    def call(a: Lanes, b: Lanes, c: Lanes | None = None) -> Lanes:
        result = compare(a, b)
        if combine is not None and c is not None:
            result = combine(result, c)
        return np.where(result, yes, type(yes)(0))

    return call


@lanes("selp", "9.7.6.3", operands=("=T", "T", "T", "pred"), types=_TYPES)
def select(_form: Form) -> Handler:
    """D = c ? a : b."""
    return lambda a, b, c: np.where(c, a, b)


@lanes("slct", "9.7.6.4", operands=("=T0", "T0", "T0", "T1"), types=_TYPES, flags=("ftz",))
def select_by_sign(_form: Form) -> Handler:
    """D = c >= 0 ? a : b."""
    return lambda a, b, c: np.where(c >= 0, a, b)
