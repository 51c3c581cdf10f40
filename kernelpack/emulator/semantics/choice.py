"""The smaller or larger of values, integers as well as floats (PTX ISA 9.7.1.12, 9.7.3.11)."""

import numpy as np

from kernelpack.emulator.machine.lanes import Lanes
from kernelpack.emulator.semantics.floating import Function, elementwise
from kernelpack.emulator.semantics.table import FLOATS, WORDS, Form, Handler, lanes

_FLAGS = ("ftz", "NaN", "xorsign", "abs", "relu")
_TYPES = (*WORDS, *FLOATS, "f16x2", "bf16x2", "u16x2", "s16x2")


def _operands(form: Form) -> tuple[str, ...]:
    return ("=T",) + ("T",) * (len(form.instruction.operands) - 1)


def _choose(form: Form, plain: Function, quiet: Function, loud: Function) -> Handler:
    """Min or max, of two or three values; `quiet` passes over NaN, `loud` keeps it."""
    if form.has("xorsign", "abs") and form.has("xorsign"):
        raise form.unsupported("`.xorsign`")
    kind = form.type
    if kind in ("u16x2", "s16x2"):
        half = np.dtype(np.int16 if kind[0] == "s" else np.uint16)
        return lambda *values: _fold(
            plain, [np.ascontiguousarray(v).view(half) for v in values]
        ).view(np.uint32)
    if kind in WORDS:
        if form.has("relu"):
            return lambda *values: np.maximum(_fold(plain, list(values)), 0).astype(values[0].dtype)
        return plain if len(form.instruction.operands) == 3 else lambda *v: _fold(plain, list(v))
    chosen = signed_zero(loud if form.has("NaN") else quiet, quiet is np.fmin)
    many = chosen if len(form.instruction.operands) == 3 else lambda *v: _fold(chosen, list(v))
    if form.has("abs"):
        return elementwise(form, _of_magnitudes(many))
    return elementwise(form, many)


def _of_magnitudes(function: Function) -> Function:
    """A function of the absolute values."""
    return lambda *values: function(*(np.abs(value) for value in values))


def signed_zero(function: Function, smallest: bool) -> Function:
    """Min or max in which -0 is less than +0."""

    def call(a: Lanes, b: Lanes) -> Lanes:
        result = function(a, b)
        both = (a == 0) & (b == 0)
        if np.count_nonzero(both):
            negative = np.signbit(a) | np.signbit(b) if smallest else np.signbit(a) & np.signbit(b)
            zero = np.where(negative, -0.0, 0.0).astype(result.dtype)
            result = np.where(both, zero, result)
        return result

    return call


def _fold(function: Function, values: list[Lanes]) -> Lanes:
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


@lanes("min", "9.7.3.11", operands=_operands, types=_TYPES, flags=_FLAGS)
def minimum(form: Form) -> Handler:
    """D = the smaller one; a NaN loses unless `.NaN`."""
    return _choose(form, np.minimum, np.fmin, np.minimum)


@lanes("max", "9.7.3.12", operands=_operands, types=_TYPES, flags=_FLAGS)
def maximum(form: Form) -> Handler:
    """D = the larger one; a NaN loses unless `.NaN`."""
    return _choose(form, np.maximum, np.fmax, np.maximum)
