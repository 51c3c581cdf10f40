"""DLPack, read and written with ctypes: no framework is imported.

The structures are those of dlpack.h, versions 0.x (`dltensor`) and 1.x (`dltensor_versioned`).
A capsule that is read is not consumed: it frees itself when the reader drops it.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelpack.formats.dtype import DType

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
MAX_VERSION = (1, 0)

_INT, _UINT, _FLOAT, _BFLOAT, _E4M3FN, _E5M2 = 0, 1, 2, 4, 10, 12  # DLDataTypeCode
DTYPES = {
    (_INT, 8): DType.I8,
    (_INT, 16): DType.I16,
    (_INT, 32): DType.I32,
    (_INT, 64): DType.I64,
    (_UINT, 8): DType.U8,
    (_UINT, 16): DType.U16,
    (_UINT, 32): DType.U32,
    (_UINT, 64): DType.U64,
    (_FLOAT, 16): DType.FP16,
    (_FLOAT, 32): DType.FP32,
    (_FLOAT, 64): DType.FP64,
    (_BFLOAT, 16): DType.BF16,
    (_E4M3FN, 8): DType.E4M3,
    (_E5M2, 8): DType.E5M2,
}
"""Type code and bits of an element → data type."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_VERSIONED, _UNVERSIONED = b"dltensor_versioned", b"dltensor"
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A capsule's contents: address in bytes; shape and strides in elements."""

    address: int
    device_type: int
    device: int
    dtype: DType | None  # None: a type kernelpack does not know
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # None: row-major
    is_read_only: bool


def export(array: Any, stream: int | None) -> Any:  # noqa: ANN401 - any framework's array
    """The array's capsule; the framework makes its data ready for work on `stream`, if any.

    Raises:
        BufferError: the framework will not share this array (it needs a gradient, say).

    """
    try:
        return array.__dlpack__(stream=stream, max_version=MAX_VERSION)
    except TypeError:  # a producer older than DLPack 1.0
        return array.__dlpack__(stream=stream)


def read(capsule: Any) -> Tensor:  # noqa: ANN401 - a PyCapsule has no type of its own
    """The capsule's contents; nothing of it is kept.

    Raises:
        BufferError: it is not a DLPack capsule that nobody has consumed yet.

    """
    if _is_valid(capsule, _VERSIONED):
        versioned = _Versioned.from_address(_get_pointer(capsule, _VERSIONED))
        return _tensor(versioned.tensor, is_read_only=bool(versioned.flags & READ_ONLY))
    if _is_valid(capsule, _UNVERSIONED):
        managed = _Managed.from_address(_get_pointer(capsule, _UNVERSIONED))
        return _tensor(managed.tensor, is_read_only=False)
    raise BufferError("not a DLPack capsule, or one that was consumed")


def _tensor(tensor: _Tensor, *, is_read_only: bool) -> Tensor:
    rank = tensor.rank
    known = DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    return Tensor(
        address=(tensor.data or 0) + tensor.byte_offset,
        device_type=tensor.device_type,
        device=tensor.device_id,
        dtype=known,
        shape=tuple(tensor.shape[i] for i in range(rank)),
        strides=tuple(tensor.strides[i] for i in range(rank)) if tensor.strides else None,
        is_read_only=is_read_only,
    )


_is_valid_at = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_get_pointer_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))

_shared: dict[int, tuple[object, ...]] = {}
"""Arrays that a consumer of a capsule still uses, by the address of its structure."""


def share(
    address: int, shape: tuple[int, ...], dtype: DType, device: int, *, owner: object, version: int
) -> Any:  # noqa: ANN401 - a PyCapsule has no type of its own
    """A capsule of row-major device memory, which keeps `owner` alive until it is dropped.

    Args:
        address: the first element's device address, bytes.
        shape: elements along each dimension.
        dtype: the element type.
        device: the device's ordinal.
        owner: the object whose memory it is.
        version: 1 for `dltensor_versioned`, 0 for `dltensor`.

    """
    code, bits = next(pair for pair, known in DTYPES.items() if known is dtype)
    sides = (ctypes.c_int64 * len(shape))(*shape)
    steps = (ctypes.c_int64 * len(shape))(*row_major(shape))
    tensor = _Tensor(address, CUDA, device, len(shape), code, bits, 1, sides, steps, 0)
    deleter = ctypes.cast(_DELETER, ctypes.c_void_p)
    if version:
        managed: Any = _Versioned(*MAX_VERSION, None, deleter, 0, tensor)
    else:
        managed = _Managed(tensor, None, deleter)
    where = ctypes.addressof(managed)
    _shared[where] = (managed, sides, steps, owner)
    name = _VERSIONED if version else _UNVERSIONED
    return _new_capsule(where, name, ctypes.cast(_DESTRUCTOR, ctypes.c_void_p))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides in elements of an array without gaps."""
    strides, step = [], 1
    for side in reversed(shape):
        strides.append(step)
        step *= side
    return tuple(reversed(strides))


def _forget(address: int) -> None:
    """The consumer's last act: it no longer uses the structure and the memory."""
    _shared.pop(address, None)


def _drop(capsule: int) -> None:
    """A capsule goes; one that was consumed has another name, and its consumer deletes."""
    for name in (_VERSIONED, _UNVERSIONED):
        if _is_valid_at(capsule, name):
            _shared.pop(_get_pointer_at(capsule, name), None)


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_forget)
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_drop)
