"""Conversion between types (PTX ISA 9.7.9.21)."""

from collections.abc import Callable
from functools import cache

import numpy as np

from kernelpack.emulator.machine.lanes import Lanes
from kernelpack.emulator.semantics.floating import flush, one_nan, relu, saturate
from kernelpack.emulator.semantics.rounding import (
    MODES,
    bf16_to_f32,
    f16_to_f32,
    f32_to_bf16,
    f32_to_f16,
    f64_to_f32_odd,
    narrow,
)
from kernelpack.emulator.semantics.table import FLOATS, INTEGERS, TYPES, Form, Handler, lanes
from kernelpack.formats import convert as packed

_TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_FLAGS = (*MODES, "rna", "rs", *_TO_INTEGER, "ftz", "sat", "satfinite", "relu", "scaled")
_NUMPY = {
    **{f"{k}{b}": np.dtype(f"{'ui'[k == 's']}{b // 8}") for k in "us" for b in (8, 16, 32, 64)},
    **{f"b{b}": np.dtype(f"u{b // 8}") for b in (8, 16, 32, 64)},
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
_EXPONENT_BITS = {"f16": 5, "bf16": 8}
Function = Callable[[Lanes], Lanes]


def _is_packed(form: Form) -> bool:
    if len(form.types) != 2 or form.types not in packed.FORMS:
        return False
    return any(kind == "tf32" or kind.endswith(("x2", "x4")) for kind in form.types)


_REGISTER = {"e2m1x2": "b8", "ue8m0x2": "b16", "e2m1x4": "b16", "tf32": "b32"}


def _register_of(kind: str) -> str:
    """The type of the register that holds a value of a packed type."""
    if kind in _REGISTER:
        return _REGISTER[kind]
    if kind.endswith("x4"):
        return "b32"
    if kind in ("f16x2", "bf16x2", "f32"):
        return "b32"
    return "b16"


def _operands(form: Form) -> tuple[str, ...]:
    if not _is_packed(form):
        return ("=T0", "T1")
    count = len(form.instruction.operands) - 1
    to, source = form.types
    first = form.instruction.operands[1]
    if to.endswith("x4") and count == 2 and hasattr(first, "items"):
        return (f"={_register_of(to)}", "{" + _register_of(source) + "}", "b32")
    return (f"={_register_of(to)}", *(_register_of(source),) * count)


@lanes("cvt", "9.7.9.21", operands=_operands, types=TYPES, flags=_FLAGS)
def convert(form: Form) -> Handler:
    """D = a as another type."""
    if len(form.types) != 2:
        raise form.unsupported("a conversion has two types")
    if _is_packed(form):
        return _packed(form)
    to, source = form.types
    for kind in form.types:
        if kind not in (*INTEGERS, *FLOATS):
            raise form.unsupported(f"`.{kind}` in a conversion")
    if source in INTEGERS:
        return _from_integer(form, to)
    decode = {"f16": lambda a: f16_to_f32(a.view(np.uint16)), "bf16": bf16_to_f32}.get(source)
    inner = _to_integer(form, to, source) if to in INTEGERS else _to_float(form, to, source)
    if decode is None:
        return inner
    return lambda a: inner(decode(a))


def _packed(form: Form) -> Handler:
    """Conversions of pairs and quadruples, and to tf32: the number formats know them."""
    to, source = form.types
    if form.has("scaled"):
        raise form.unsupported("a scaled conversion")
    rounding = form.one_of(("rn", "rna", "rz", "rm", "rp", "rs"), "rn")
    width = np.dtype(f"u{int(_register_of(to)[1:]) // 8}")
    satfinite, relu_ = form.has("satfinite"), form.has("relu")

    if (to, source) in _PAIRS and rounding == "rn" and not (satfinite or relu_):
        encode = _PAIRS[to, source]
        return lambda a, b: encode(a).astype(np.uint32) << _HALF | encode(b)
    if to == "f16x2" and source in packed.NARROW:
        table = _widened(source, relu=relu_)
        return lambda a: table[a]

    def call(*inputs: Lanes) -> Lanes:
        values = list(inputs)
        random = None
        if rounding == "rs":
            random = values.pop()
            if isinstance(values[0], list):
                values = values[0]
        wide = [v.astype(np.uint32) for v in values]
        return packed.cvt(
            to, source, wide, rounding=rounding, satfinite=satfinite, relu=relu_, random=random
        ).astype(width)

    return call


_PAIRS: dict[tuple[str, str], Function] = {
    ("bf16x2", "f32"): lambda a: f32_to_bf16(a.view(np.float32)),
    ("f16x2", "f32"): lambda a: f32_to_f16(a.view(np.float32)),
}
"""The conversions of epilogues: what `packed.cvt` does, without its generality."""
_HALF = np.array(16, np.uint32)


@cache
def _widened(source: str, *, relu: bool) -> Lanes:
    """The conversion of every pair of a narrow format: loops of reference kernels widen them."""
    codes = np.arange(1 << int(_register_of(source)[1:]), dtype=np.uint32)
    return packed.cvt("f16x2", source, [codes], relu=relu)


def _from_integer(form: Form, to: str) -> Handler:
    if to in INTEGERS:
        target = _NUMPY[to]
        if form.has("sat"):
            limits = np.iinfo(target)
            return lambda a: _clamp_integer(a, limits.min, limits.max).astype(target)
        return lambda a: a.astype(target)
    mode = form.one_of(MODES, "rn")
    if to == "f64":
        return lambda a: a.astype(np.float64)
    if to == "f32":
        return _integer_to_f32(mode)
    step = _integer_to_f32("rz")
    if mode != "rn":
        raise form.unsupported(f"rounding `.{mode}` of an integer to `.{to}`")
    encode = f32_to_f16 if to == "f16" else f32_to_bf16

    def through_odd(a: Lanes) -> Lanes:
        cut = step(a)
        inexact = cut.astype(np.float64) != a.astype(np.float64)
        odd = np.where(inexact, cut.view(np.uint32) | np.uint32(1), cut.view(np.uint32))
        return encode(odd.view(np.float32)).view(np.float16 if to == "f16" else np.uint16)

    return through_odd


def _integer_to_f32(mode: str) -> Function:
    if mode == "rn":
        return lambda a: a.astype(np.float32)

    def directed(a: Lanes) -> Lanes:
        wide = a.astype(np.float64)
        error = (a - wide.astype(a.dtype)).astype(np.int64).astype(np.float64)
        return narrow(wide, np.where(np.abs(wide) < 2**53, 0.0, error), mode)

    return directed


def _cut_nan(a: Lanes, exponent_bits: int) -> Lanes:
    """NaN of f64 → the sign and the top of the payload, quiet; those of f32 lose both."""
    bits = a.view(np.uint64)
    fraction_bits = np.uint64(15 - exponent_bits)
    sign = bits >> np.uint64(63) << np.uint64(15)
    exponent = np.uint64((1 << exponent_bits) - 1) << fraction_bits
    payload = bits << np.uint64(12) >> (np.uint64(64) - fraction_bits)
    return (sign | exponent | payload | np.uint64(1) << fraction_bits - np.uint64(1)).astype(
        np.uint16
    )


def _clamp_integer(a: Lanes, low: int, high: int) -> Lanes:
    """Clamp, by Python's integers where numpy's types do not hold both."""
    bounds = np.iinfo(a.dtype)
    return np.clip(a, max(low, bounds.min), min(high, bounds.max))


def _to_integer(form: Form, to: str, source: str) -> Function:
    """Round, clamp to the range; NaN gives 0, or the top bit alone where 64 bits are involved."""
    rounding = _TO_INTEGER[form.one_of(_TO_INTEGER, "rzi")]
    target = _NUMPY[to]
    limits = np.iinfo(target)
    low, high = float(limits.min), float(limits.max)
    wide = source == "f64" or target.itemsize == 8
    nan = target.type(limits.min if target.kind == "i" else limits.max // 2 + 1)
    of_nan = nan if wide else target.type(0)

    def call(a: Lanes) -> Lanes:
        if form.has("ftz"):
            a = flush(a)
        value = rounding(a.astype(np.float64))
        inside = (value > low) & (value < high)
        plain = np.where(inside, value, 0.0).astype(target)
        beyond = np.where(value >= high, target.type(limits.max), target.type(limits.min))
        return np.where(np.isnan(value), of_nan, np.where(inside, plain, beyond))

    return call


def _to_float(form: Form, to: str, source: str) -> Function:
    """From f32 or f64 (16-bit types were widened) to a float type."""
    whole = _TO_INTEGER.get(form.one_of(_TO_INTEGER))
    mode = form.one_of(MODES, "rn")
    steps: list[Function] = []
    if form.has("ftz"):
        steps.append(lambda a: flush(a) if a.dtype == np.float32 else a)
    if whole is not None:
        steps.append(whole)
    if to == "f32" and (source == "f16" or whole is not None or form.has("ftz")):
        steps.append(one_nan)
    if form.has("relu"):
        steps.append(relu)
    if form.has("sat"):
        steps.append(saturate)
    steps.append(_encode(form, to, source, mode))

    def call(a: Lanes) -> Lanes:
        for step in steps:
            a = step(a)
        return a

    return call


def _encode(form: Form, to: str, source: str, mode: str) -> Function:
    if to == "f64":
        return lambda a: a.astype(np.float64)
    if to == "f32":
        if source != "f64":
            return lambda a: a.astype(np.float32)
        return lambda a: narrow(a, 0.0, mode)
    view = np.float16 if to == "f16" else np.uint16
    if form.has("satfinite"):
        raise form.unsupported(f"`.satfinite` to `.{to}`")
    if mode == "rn":
        encode = f32_to_f16 if to == "f16" else f32_to_bf16
        if source != "f64":
            return lambda a: encode(a).view(view)
        return lambda a: np.where(
            np.isnan(a),
            _cut_nan(a, _EXPONENT_BITS[to]).view(view),
            encode(f64_to_f32_odd(a, 0.0)).view(view),
        )
    if mode == "rz":
        return lambda a: (
            packed.cvt(to, "f32", [a.view(np.uint32)], rounding="rz").astype(np.uint16).view(view)
        )
    raise form.unsupported(f"rounding `.{mode}` to `.{to}`")
