"""`__cuda_array_interface__`, versions 2 and 3 (numba's documentation), as numbers.

Others wrote it: each entry is checked before it is used, and what is not
right is refused by the argument's name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType

_LITTLE_ENDIAN = ("<", "|")
"""The byte orders of a typestr that a GPU reads; `|` is that of single bytes and of voids."""

# typestr without its byte order → type; ml_dtypes gives bfloat16 as a void of two bytes
TYPESTRS: Mapping[str, DType] = {
    "f2": DType.FP16,
    "V2": DType.BF16,
    "f4": DType.FP32,
    "f8": DType.FP64,
    "i1": DType.I8,
    "i2": DType.I16,
    "i4": DType.I32,
    "i8": DType.I64,
    "u1": DType.U8,
    "u2": DType.U16,
    "u4": DType.U32,
    "u8": DType.U64,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """An interface's contents: address in bytes, strides in elements (None: row-major).

    `stream` is the handle of the stream that the data is made on; None: it is there.
    """

    pointer: int
    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...] | None
    is_read_only: bool
    stream: int | None


def parse(interface: object, name: str) -> Interface:
    """The interface of an argument.

    Raises:
        ProblemError: an entry is missing, or is not what the interface asks for; names both.

    """
    if not isinstance(interface, Mapping):
        raise _wrong(name, "is", f"a {type(interface).__name__}", "a dictionary")
    dtype = _dtype(interface, name)
    if interface.get("mask") is not None:
        raise ProblemError(f"`{name}` has a mask, which no kernel looks at")
    shape = _numbers(interface, "shape", name)
    if min(shape, default=0) < 0:
        raise _wrong(name, "has `shape`", shape, "sides of at least 0")
    pointer, is_read_only = _data(interface, name)
    return Interface(
        pointer=pointer,
        shape=shape,
        dtype=dtype,
        strides=_strides(interface, name, dtype),
        is_read_only=is_read_only,
        stream=None if interface.get("stream") is None else _stream(interface["stream"], name),
    )


def _dtype(interface: Mapping[str, Any], name: str) -> DType:
    typestr = str(_entry(interface, "typestr", name))
    dtype = TYPESTRS.get(typestr[1:]) if typestr[:1] in _LITTLE_ENDIAN else None
    if dtype is None:
        raise ProblemError(
            f"`{name}` has the element type {typestr}, which kernelpack does not know",
            hint="types are little-endian, such as `<f4`",
        )
    return dtype


def _data(interface: Mapping[str, Any], name: str) -> tuple[int, bool]:
    match _entry(interface, "data", name):
        case (pointer, is_read_only) if pointer is None or hasattr(pointer, "__index__"):
            return index(pointer or 0), bool(is_read_only)
        case found:
            raise _wrong(name, "has `data`", found, "(address, read-only)")


def _strides(interface: Mapping[str, Any], name: str, dtype: DType) -> tuple[int, ...] | None:
    """Strides in elements; those given are in bytes."""
    if interface.get("strides") is None:
        return None
    strides = _numbers(interface, "strides", name)
    return in_elements(strides, dtype, name)


def in_elements(strides: tuple[int, ...], dtype: DType, name: str) -> tuple[int, ...]:
    """Strides in elements, from bytes.

    Raises:
        ProblemError: one is not a multiple of an element; names the argument.

    """
    size = dtype.numpy.itemsize
    if any(step % size for step in strides):
        rule = f"`{name}` must have strides of whole elements of {size} bytes, not {list(strides)}"
        raise ProblemError(rule, hint="give a contiguous copy")
    return tuple(step // size for step in strides)


def _stream(stream: Any, name: str) -> int:  # noqa: ANN401 - as the interface has it
    if isinstance(stream, bool) or not hasattr(stream, "__index__") or index(stream) <= 0:
        raise _wrong(name, "has `stream`", stream, "a handle above 0, or None")
    return index(stream)


def _numbers(interface: Mapping[str, Any], word: str, name: str) -> tuple[int, ...]:
    match _entry(interface, word, name):
        case tuple() | list() as many if all(hasattr(each, "__index__") for each in many):
            return tuple(map(index, many))
        case found:
            raise _wrong(name, f"has `{word}`", found, "a tuple of integers")


def _entry(interface: Mapping[str, Any], word: str, name: str) -> Any:  # noqa: ANN401
    if word not in interface:
        raise ProblemError(f"`{name}`: its `__cuda_array_interface__` has no `{word}`")
    return interface[word]


def _wrong(name: str, what: str, found: object, right: str) -> ProblemError:
    rule = f"`{name}`: its `__cuda_array_interface__` {what} {found!s:.60}, not {right}"
    return ProblemError(rule)
