"""The arithmetic of reducing copies and atomics: old and new elements to what memory then holds.

Arrays are uint8 views of whole elements, so that the machine need not know types.
Sources: PTX ISA 9.1, 9.7.9.25.4.2 (cp.reduce.async.bulk), 9.7.9.27.1.3 (tensor), 9.7.13.6 (red).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import encode
from kernelpack.spec.tensormap import Element

Bytes = npt.NDArray[np.uint8]
Values = npt.NDArray[Any]

ELEMENTS = {
    Element.U32: DType.U32,
    Element.I32: DType.I32,
    Element.U64: DType.U64,
    Element.I64: DType.I64,
    Element.FP16: DType.FP16,
    Element.BF16: DType.BF16,
    Element.FP32: DType.FP32,
    Element.FP64: DType.FP64,
}
"""The number type of each element that can be reduced, named as tensor maps name it."""


def _add(dtype: DType, old: Values, new: Values) -> Values:
    """Integers wrap; floats round once, to nearest even."""
    if dtype in (DType.FP16, DType.BF16):
        # A float64 holds the sum of two halves closely enough that it is rounded only once.
        total = old.astype(np.float64) + new.astype(np.float64)
        return encode(dtype, total).astype(np.uint16).view(dtype.numpy)
    return old + new


def _minimum(dtype: DType, old: Values, new: Values) -> Values:
    """Of floats the one that is a number; -0 is less than +0."""
    if not dtype.is_float:
        return np.minimum(old, new)
    equal = np.where(np.signbit(old), old, new)
    return np.where(old == new, equal, np.fmin(old, new))


def _maximum(dtype: DType, old: Values, new: Values) -> Values:
    if not dtype.is_float:
        return np.maximum(old, new)
    equal = np.where(np.signbit(old), new, old)
    return np.where(old == new, equal, np.fmax(old, new))


def _increment(_dtype: DType, old: Values, new: Values) -> Values:
    """Count up to `new`, then start at 0 again."""
    return np.where(old >= new, 0, old + 1).astype(old.dtype)


def _decrement(_dtype: DType, old: Values, new: Values) -> Values:
    """Count down, starting at `new` again after 0 or from above it."""
    return np.where((old == 0) | (old > new), new, old - 1).astype(old.dtype)


_HALVES = {DType.FP16, DType.BF16}
_WHOLE = {DType.U32, DType.I32, DType.U64, DType.I64}
# operation -> what it does, the types it exists for.
_OPERATIONS: dict[str, tuple[Callable[[DType, Values, Values], Values], set[DType]]] = {
    "add": (_add, _HALVES | _WHOLE | {DType.FP32, DType.FP64}),
    "min": (_minimum, _HALVES | _WHOLE),
    "max": (_maximum, _HALVES | _WHOLE),
    "inc": (_increment, {DType.U32}),
    "dec": (_decrement, {DType.U32}),
    "and": (lambda _dtype, old, new: old & new, _WHOLE),
    "or": (lambda _dtype, old, new: old | new, _WHOLE),
    "xor": (lambda _dtype, old, new: old ^ new, _WHOLE),
}


def reduce(operation: str, element: Element, old: Bytes, new: Bytes) -> Bytes:
    """Elements after the operation; all three are uint8 arrays of the same whole elements."""
    function, types = _OPERATIONS.get(operation, (_add, set()))
    dtype = ELEMENTS.get(element)
    if dtype is None or dtype not in types:
        raise UnsupportedError(f"reduction {operation} of {element.name} is not modelled")
    with np.errstate(over="ignore", invalid="ignore"):
        result = function(dtype, _elements(old, dtype), _elements(new, dtype))
    return np.ascontiguousarray(result).view(np.uint8)


def _elements(raw: Bytes, dtype: DType) -> Values:
    return np.ascontiguousarray(raw).view(dtype.numpy)
