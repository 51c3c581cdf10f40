"""A number of Python or numpy as the bits of a kernel's parameter, or a refusal: none is cut.

Plain Python numbers become what the parameter declares. numpy's have a type of their own, which
must be the parameter's kind and size; raw `.b` types take any of their size.
"""

import math
from typing import Any

import numpy as np

from kernelpack.emulator.ptx.syntax import BITS, Parameter
from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.spec.launch import Scalar

_WORDS = {1: DType.U8, 2: DType.U16, 4: DType.U32, 8: DType.U64}
_KINDS = {"f": "f", "u": "iub", "s": "iub"}
"""First letter of a PTX type → numpy's kinds of number that it takes."""


def scalar(given: object, parameter: Parameter) -> Scalar:
    """A number for a parameter.

    Raises:
        ProblemError: it is not a number, not one of this type, or out of its range.

    """
    if isinstance(given, np.generic):
        raw = _of_numpy(given, parameter)
    elif isinstance(given, int | float):
        raw = _of_python(given, parameter)
    else:
        raise _refused(given, parameter, "give an array, a number or a tensor map")
    return Scalar(_WORDS[len(raw)], int.from_bytes(raw, "little"))


def _of_numpy(given: "np.generic[Any]", parameter: Parameter) -> bytes:
    kinds = given.dtype.kind if _is_raw(parameter) else _KINDS[parameter.type[0]]
    if (
        given.nbytes != parameter.size
        or given.dtype.kind not in kinds
        or given.nbytes not in _WORDS
    ):
        raise _refused(given, parameter, "give a plain number, or one of its type")
    return given.tobytes()


def _of_python(given: float, parameter: Parameter) -> bytes:
    """The number as the parameter declares it."""
    if parameter.size * 8 != BITS[parameter.type] or parameter.size not in _WORDS:
        raise _refused(given, parameter, f"give numpy's type of {parameter.size} bytes")
    if parameter.type[0] == "f":
        return _rounded(given, parameter)
    if not isinstance(given, int):
        raise _refused(given, parameter, "give an integer")
    least, most = -(1 << 8 * parameter.size - 1), (1 << 8 * parameter.size) - 1
    if not least <= given <= most:
        raise _refused(given, parameter, f"it holds {least} to {most}")
    return (given & most).to_bytes(parameter.size, "little")


def _rounded(given: float, parameter: Parameter) -> bytes:
    """A float that does not overflow."""
    try:
        with np.errstate(over="ignore"):
            value = np.dtype(f"f{parameter.size}").type(float(given))
    except OverflowError as error:
        raise _refused(given, parameter, "it is out of its range") from error
    if np.isinf(value) and not math.isinf(given):
        raise _refused(given, parameter, "it is out of its range")
    return bytes(value.tobytes())


def _is_raw(parameter: Parameter) -> bool:
    return parameter.type[0] == "b" or parameter.size * 8 != BITS[parameter.type]


def _refused(given: object, parameter: Parameter, hint: str) -> ProblemError:
    kind = f".{parameter.type}"
    if parameter.size * 8 != BITS[parameter.type]:
        kind += f"[{parameter.size * 8 // BITS[parameter.type]}]"
    what = f"{short(given)} of type {type(given).__name__} for a parameter of {kind}"
    return ProblemError(what, where=parameter.name, hint=hint)


def short(given: object) -> str:
    """A value in a message; Python writes no integer of more than 4300 digits."""
    if isinstance(given, int) and given.bit_length() > 128:
        return f"a number of {given.bit_length()} bits"
    try:
        return f"{given!r:.60}"
    except ValueError:
        return "something with such a number"
