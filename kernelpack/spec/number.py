"""The real numbers of a call, such as an epsilon: what may be one, and what a kernel gets of it.

A number is a float of 64 bits until a parameter takes it, and is then rounded once, to the nearest
that the parameter's type has, of two as near the even one; one too small becomes 0. Infinities
pass as they are.
"""

import math
import re

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode, encode

REALS = (DType.FP16, DType.BF16, DType.FP32, DType.FP64)
"""The types that a kernel takes numbers in."""

_REAL = re.compile(r"[-+]?(inf|((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?)")
_SHOWN = 40  # characters of a text in an error


def written(text: str) -> float:
    """A number as a person writes it: `1e-6`, `0.5`, `-inf`, `2`.

    Raises:
        ProblemError: it is not a number, or is finite and beyond a float of 64 bits.

    """
    if not _REAL.fullmatch(text):
        raise ProblemError(f"`{text[:_SHOWN]}` is not a number", hint="write it as `1e-6` or `0.5`")
    found = float(text)
    if math.isinf(found) and "inf" not in text:
        raise ProblemError(f"`{text[:_SHOWN]}` does not fit in 64 bits")
    return found


def number(value: object, name: str) -> float:
    """A number as given.

    Raises:
        ProblemError: it is not a number, or an integer that no float is; names the number.

    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        what = f"must be a number, not {value!r:.60} of type {type(value).__name__}"
        raise ProblemError(what, where=f"`{name}`")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isnan(found):
        raise ProblemError("must be a number, not NaN", where=f"`{name}`")
    if found != value:
        raise ProblemError("must be a number that a float of 64 bits holds", where=f"`{name}`")
    return found


def rounded(value: float, dtype: DType, name: str) -> float:
    """A number as a parameter of a type has it.

    Raises:
        ProblemError: it is too large for the type; names the parameter.

    """
    found = float(decode(dtype, code(value, dtype)))
    if math.isinf(found) and not math.isinf(value):
        raise ProblemError(f"{value:g} does not fit in {dtype.label}", where=f"parameter `{name}`")
    return found


def code(value: float, dtype: DType) -> int:
    """The bits of a number in a type."""
    return int(encode(dtype, np.float64(value)))
