"""Floating-point arithmetic: one value a lane, or two packed in it (PTX ISA 9.7.3 to 9.7.5)."""

from collections.abc import Callable

import numpy as np

from kernelpack.emulator.machine.lanes import Lanes
from kernelpack.emulator.models import double
from kernelpack.emulator.semantics import integer
from kernelpack.emulator.semantics.rounding import (
    MODES,
    add_in,
    bf16_to_f32,
    f16_to_f32,
    f32_to_bf16,
    f32_to_f16,
    f64_to_f32_odd,
    multiply_add_in,
    multiply_in,
    two_sum,
)
from kernelpack.emulator.semantics.table import FLOATS, PACKED, WORDS, Form, Handler, lanes

Function = Callable[..., Lanes]
_TINY = np.float32(2.0**-126)
_NAN = np.uint32(0x7FFF_FFFF).view(np.float32)
_HALVES = {"f16": (f16_to_f32, f32_to_f16), "bf16": (bf16_to_f32, f32_to_bf16)}
_ALL = (*WORDS, *FLOATS, *PACKED)
_FLAGS = (*MODES, "ftz", "sat")


def flush(value: Lanes) -> Lanes:
    """Subnormal f32 → zero of the same sign."""
    return np.where(np.abs(value) < _TINY, np.copysign(np.float32(0), value), value)


def saturate(value: Lanes) -> Lanes:
    """Clamped to [0, 1]; NaN and -0 → +0."""
    zero, one = value.dtype.type(0), value.dtype.type(1)
    clamped: Lanes = np.minimum(value, one)
    return np.where(value > zero, clamped, zero)


def canonical(function: Function) -> Function:
    """An f32 function whose NaN results are the one NaN PTX gives, 0x7FFFFFFF."""
    return lambda *inputs: one_nan(function(*inputs))


def one_nan(value: Lanes) -> Lanes:
    """F32 whose NaN are all 0x7FFFFFFF."""
    bad = np.isnan(value)
    return np.where(bad, _NAN, value) if np.count_nonzero(bad) else value


def finished(form: Form, function: Function) -> Function:
    """An f32 function with what `.ftz` and `.sat` add to it."""
    function = canonical(function)
    if form.has("ftz"):
        plain = function
        function = lambda *inputs: flush(plain(*(flush(i) for i in inputs)))  # noqa: E731
    if form.has("sat"):
        unclamped = function
        function = lambda *inputs: saturate(unclamped(*inputs))  # noqa: E731
    return function


def on_halves(form: Form, kind: str, function: Function) -> Function:
    """A function of f32 as a function of f16 or bf16 bits, rounded once more."""
    decode, encode = _HALVES[kind]
    function = with_flags(form, function)

    def call(*inputs: Lanes) -> Lanes:
        return encode(function(*(decode(i.view(np.uint16)) for i in inputs)))

    if kind == "f16":
        return lambda *inputs: call(*inputs).view(np.float16)
    return call


def with_flags(form: Form, function: Function) -> Function:
    """The f32 step of a 16-bit function: `.sat` clamps, `.relu` cuts below zero."""
    if form.has("sat"):
        return lambda *inputs: saturate(function(*inputs))
    if form.has("relu"):
        return lambda *inputs: relu(function(*inputs))
    return function


def relu(value: Lanes) -> Lanes:
    """max(value, 0), NaN kept."""
    return np.where(np.isnan(value), value, np.maximum(value, value.dtype.type(0)))


def on_pairs(form: Form, kind: str, function: Function) -> Function:
    """A function of f32 on two halves of a lane: f16x2, bf16x2 or f32x2."""
    if kind == "f32x2":
        pair = finished(form, function)

        def call(*inputs: Lanes) -> Lanes:
            parts = [np.ascontiguousarray(i).view(np.float32).reshape(-1) for i in inputs]
            return np.ascontiguousarray(pair(*parts), np.float32).view(np.uint64)

        return call
    decode, encode = _HALVES[kind[:-2]]
    half = with_flags(form, function)

    def halves(*inputs: Lanes) -> Lanes:
        parts = [decode(np.ascontiguousarray(i).view(np.uint16)) for i in inputs]
        return np.ascontiguousarray(encode(half(*parts))).view(np.uint32)

    return halves


def elementwise(form: Form, function: Function, *, double: Function | None = None) -> Handler:
    """A function of f32 as a handler for the form's type."""
    kind = form.type
    if kind in PACKED:
        return on_pairs(form, kind, function)
    if kind in _HALVES:
        return on_halves(form, kind, function)
    if kind == "f64":
        return double or function
    return finished(form, function)


def _mode(form: Form) -> str:
    mode = form.one_of(MODES, "rn")
    if mode != "rn" and form.type not in ("f32", "f32x2"):
        raise form.unsupported(f"rounding `.{mode}` of `.{form.type}`")
    return mode


def _sum_operands(form: Form) -> tuple[str, ...]:
    """`add.f32.f16` takes a of the second type (PTX ISA 9.7.5)."""
    return ("=T0", "T1", "T0") if len(form.types) == 2 else integer.sum_operands(form)


def _mixed(form: Form, function: Function) -> Handler:
    """A sum of f32 whose first operand has 16 bits.

    Raises:
        UnsupportedError: other types are mixed.
    """
    if form.types[0] != "f32" or form.type not in _HALVES:
        raise form.unsupported("mixed types")
    decode, finish = _HALVES[form.type][0], finished(form, function)
    return lambda a, c: finish(decode(a.view(np.uint16)), c.view(np.float32))


@lanes("add", "9.7.1.1", operands=_sum_operands, types=_ALL, flags=_FLAGS)
def add(form: Form) -> Handler:
    """D = a + b."""
    if form.type in WORDS:
        return integer.integer_add(form)
    if len(form.types) > 1:
        return _mixed(form, add_in(form.one_of(MODES, "rn")))
    return elementwise(form, add_in(_mode(form)))


@lanes("sub", "9.7.1.2", operands=_sum_operands, types=_ALL, flags=_FLAGS)
def subtract(form: Form) -> Handler:
    """D = a - b."""
    if form.type in WORDS:
        return integer.integer_subtract(form)
    plus = add_in(_mode(form) if len(form.types) == 1 else form.one_of(MODES, "rn"))
    minus = np.subtract if plus is np.add else lambda a, b: plus(a, -b)
    return _mixed(form, minus) if len(form.types) > 1 else elementwise(form, minus)


_PRODUCT_FLAGS = (*_FLAGS, "lo", "hi", "wide")


@lanes("mul", "9.7.1.3", operands=integer.product_operands, types=_ALL, flags=_PRODUCT_FLAGS)
def multiply(form: Form) -> Handler:
    """D = a * b, or a part of it."""
    if form.type in WORDS:
        return integer.integer_multiply(form)
    return elementwise(form, multiply_in(_mode(form)))


@lanes(
    "mad", "9.7.1.4", operands=integer.product_sum_operands,
    types=(*WORDS, "f32", "f64"), flags=_PRODUCT_FLAGS,
)  # fmt: skip
def multiply_and_add(form: Form) -> Handler:
    """D = a * b + c; of floats the same as fma."""
    if form.type in WORDS:
        return integer.integer_multiply_add(form)
    return fused_multiply_add(form)


def _fma_operands(form: Form) -> tuple[str, ...]:
    """`fma.rn.f32.bf16` takes a and b of the second type, c and d of the first."""
    if len(form.types) == 2:
        return ("=T0", "T1", "T1", "T0")
    return integer.TERNARY


@lanes("fma", "9.7.3.6", operands=_fma_operands, types=(*FLOATS, *PACKED), flags=(*_FLAGS, "relu"))
def fused_multiply_add(form: Form) -> Handler:
    """D = a * b + c, rounded once."""
    mode = _mode(form) if len(form.types) == 1 else form.one_of(MODES, "rn")
    function = multiply_add_in(mode)
    if len(form.types) == 2:
        decode = _HALVES[form.type][0]
        finish = finished(form, function)
        return lambda a, b, c: finish(
            decode(a.view(np.uint16)), decode(b.view(np.uint16)), c.view(np.float32)
        )
    if form.type in ("f16", "bf16", "f16x2", "bf16x2"):
        function = _half_multiply_add
    return elementwise(form, function, double=double.multiply_add)


def _half_multiply_add(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """A * b + c of values that came from f16 or bf16, as f32 rounded to odd."""
    total, error = two_sum(a.astype(np.float64) * b, c.astype(np.float64))
    return f64_to_f32_odd(total, error)


@lanes(
    "div", "9.7.3.8", operands=("=T", "T", "T"),
    types=(*WORDS, "f32", "f64"), flags=(*_FLAGS, "approx", "full"),
)  # fmt: skip
def divide(form: Form) -> Handler:
    """D = a / b; `.approx` and `.full` are computed exactly and rounded to nearest."""
    if form.type in WORDS:
        return integer.divide
    mode = form.one_of(MODES, "rn")
    if mode != "rn":
        raise form.unsupported(f"rounding `.{mode}` of a division")
    return elementwise(form, np.divide)


@lanes(
    "abs",
    "9.7.3.9",
    operands=("=T", "T"),
    types=("s16", "s32", "s64", *FLOATS, "f16x2", "bf16x2"),
    flags=("ftz",),
)
def absolute(form: Form) -> Handler:
    """D = |a|."""
    return _on_sign(form, np.abs)


@lanes(
    "neg",
    "9.7.3.10",
    operands=("=T", "T"),
    types=("s16", "s32", "s64", *FLOATS, "f16x2", "bf16x2"),
    flags=("ftz",),
)
def negate(form: Form) -> Handler:
    """D = -a; a NaN of f64 keeps its sign."""
    if form.type == "f64":
        return lambda a: np.where(np.isnan(a), a, -a)
    return _on_sign(form, np.negative)


def _on_sign(form: Form, function: Function) -> Handler:
    """A function that changes only signs; a NaN comes out as the one that arithmetic gives."""
    if form.type[0] == "s":
        return function
    return elementwise(form, function)


@lanes("copysign", "9.7.3.7", operands=("=T", "T", "T"), types=("f32", "f64"))
def copy_sign(_form: Form) -> Handler:
    """D = b with the sign of a."""
    return lambda a, b: np.copysign(b, a)


@lanes("testp", "9.7.3.5", operands=("=pred", "T"), types=("f32", "f64"),
       flags=("finite", "infinite", "number", "notanumber", "normal", "subnormal"))  # fmt: skip
def test_property(form: Form) -> Handler:
    """P = whether a has a property."""
    tiny = np.finfo(np.float32 if form.type == "f32" else np.float64).tiny
    tests: dict[str, Handler] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & ((np.abs(a) >= tiny) | (a == 0)),
        "subnormal": lambda a: (a != 0) & (np.abs(a) < tiny),
    }
    return tests[form.one_of(tests)]
