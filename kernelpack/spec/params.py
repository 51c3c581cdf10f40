"""A kernel's parameters: what each is, where its value comes from, where the C ABI puts it.

`arguments` are what a caller gives (arrays); `parameters` are what the kernel's signature takes,
in order: pointers to arguments, integers computed from the sizes, the call's numbers, and tensor
maps over arguments.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from kernelpack.formats.dtype import DType
from kernelpack.spec.expr import Expr
from kernelpack.spec.tensormap import TensorMapSpec

TENSOR_MAP_BYTES = 128
TENSOR_MAP_ALIGN = 64
"""Our own `struct alignas(64)`: CUtensorMap's alignment differs between CUDA 12.9 and 13."""

POINTER_BYTES = 8


class Access(IntEnum):
    """A kernel's access to an argument's memory; the numbers are part of the bundle format."""

    READ = 0
    WRITE = 1
    READ_WRITE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An array that the caller gives: its element type, shape in elements, and alignment in bytes.

    The shape is the least that the kernel may touch; an array may be larger in dimension 0. One of
    no elements in a call is absent: its pointer is null.
    """

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    access: Access = Access.READ
    align_bytes: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerParam:
    """The device address of an argument."""

    name: str
    argument: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarParam:
    """An integer computed from the sizes."""

    name: str
    dtype: DType
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberParam:
    """A number of the call, rounded to a type."""

    name: str
    dtype: DType
    number: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MapParam:
    """A tensor map, passed by value as a `const __grid_constant__`."""

    name: str
    map: TensorMapSpec


Param = PointerParam | ScalarParam | NumberParam | MapParam


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a parameter lies in the kernel's parameter block; bytes."""

    offset: int
    size: int


def layout(params: Iterable[Param], base: int = 0) -> tuple[Slot, ...]:
    """The C ABI's offsets of a signature: each parameter at the next multiple of its alignment.

    Machine code aligns addresses in its constant bank, where the parameters begin at `base`
    (`Target.parameter_base`): a cubin of sm_90a has a leading tensor map at offset 48.
    """
    slots: list[Slot] = []
    end = 0
    for param in params:
        size, align = _size_and_align(param)
        offset = -(-(base + end) // align) * align - base
        slots.append(Slot(offset, size))
        end = offset + size
    return tuple(slots)


def block_bytes(slots: tuple[Slot, ...]) -> int:
    """The size of the parameter block in bytes."""
    return slots[-1].offset + slots[-1].size if slots else 0


def _size_and_align(param: Param) -> tuple[int, int]:
    match param:
        case MapParam():
            return TENSOR_MAP_BYTES, TENSOR_MAP_ALIGN
        case ScalarParam(dtype=dtype) | NumberParam(dtype=dtype):
            return dtype.bits // 8, dtype.bits // 8
        case PointerParam():
            return POINTER_BYTES, POINTER_BYTES
