"""A kernel's arguments → the bytes of its parameter block, and the arrays it may write.

An array becomes the address of a copy in the emulated memory, one given twice the same address. A
`Struct` is passed by value: raw bytes with arguments at some offsets. An `ArrayMap` describes a
tensor map over an array, as `cuTensorMapEncodeTiled` takes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.faults import Fault
from kernelpack.emulator.machine import tensor_map
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.numbers import scalar, short
from kernelpack.emulator.ptx.parser import Entry
from kernelpack.emulator.ptx.syntax import Parameter
from kernelpack.errors import ProblemError
from kernelpack.spec.launch import Pointer
from kernelpack.spec.tensormap import BITS, Element, Fill, Swizzle, TensorMap, check

Array: TypeAlias = NDArray[Any]
_POINTER_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayMap:
    """A tensor map over an array in C order, whose last axis is the map's dimension 0.

    Attributes:
        array: what the map is of; given elsewhere in a launch too, it is the same memory.
        box: elements along each dimension, dimension 0 first; as many as the array has axes.
        element: the driver's name of the element; found by the array's type where left out.
        swizzle: of the box in shared memory, by its name.
        fill: what elements outside read as: `ZERO` or `NAN`.
        dims: sizes in elements, dimension 0 first; those of the array where left out.

    """

    array: Array
    box: Sequence[int]
    element: str = ""
    swizzle: str = "NONE"
    fill: str = "ZERO"
    dims: Sequence[int] = ()

    def at(self, address: int, name: str) -> TensorMap:
        """The map, the array being at an address.

        Raises:
            ProblemError: a name is not one of the driver's, the array's elements need one, or it is
                not in C order.
            TensorMapError: a rule of the TMA unit is broken.

        """
        if not self.array.flags.c_contiguous:
            what = f"a tensor map over an array with strides {self.array.strides}"
            raise ProblemError(what, where=name, hint="the array must be in C order")
        element = _named(Element, self.element or _element(self.array, name), name)
        found = TensorMap(
            name=name,
            element=element,
            address=address,
            dims=tuple(self.dims or self._dims(element)),
            strides_bytes=tuple(reversed(self.array.strides[:-1])),
            box=tuple(self.box),
            element_strides=(1,) * self.array.ndim,
            swizzle=_named(Swizzle, self.swizzle, name),
            fill=_named(Fill, self.fill, name),
        )
        check(found)
        return found

    def _dims(self, element: Element) -> tuple[int, ...]:
        """The array's shape in elements; its last axis may have several a number."""
        *outer, inner = self.array.shape
        return (inner * self.array.itemsize * 8 // BITS[element], *reversed(outer))


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """Bytes passed by value; `parts` are arguments that are put at byte offsets of them."""

    raw: bytes
    parts: Mapping[int, "Argument"] = field(default_factory=dict)


Raw: TypeAlias = bytes | bytearray | memoryview
Argument: TypeAlias = (
    Array | np.generic | int | float | Pointer | TensorMap | ArrayMap | Struct | Raw
)


class Arguments:
    """Places what is given in a memory, and packs parameters."""

    def __init__(self, memory: GlobalMemory) -> None:
        self.memory = memory
        self.placed: dict[int, tuple[Array, int]] = {}
        """id of an array → the array, and its address."""

    def packed(self, entry: Entry, given: Sequence[Argument]) -> bytes:
        """The parameter block of a launch, an argument a parameter.

        Raises:
            Fault: they are more or fewer than the parameters.
            ProblemError: an argument is not what its parameter takes.

        """
        if len(entry.parameters) != len(given):
            what = f"{len(given)} arguments for {len(entry.parameters)} parameters"
            raise Fault(what, where=entry.name)
        block = bytearray(entry.parameter_bytes)
        for argument, parameter in zip(given, entry.parameters, strict=True):
            raw = self._bytes(argument, parameter.name)
            if raw is None:
                raw = scalar(argument, parameter).raw
            _check_size(len(raw), parameter)
            block[parameter.offset : parameter.offset + len(raw)] = raw
        return bytes(block)

    def block(self, entry: Entry, given: Struct | Raw) -> bytes:
        """The parameter block that is given whole.

        Raises:
            ProblemError: it is of another size than the entry's.

        """
        raw = self._bytes(given, entry.name)
        if raw is None or len(raw) != entry.parameter_bytes:
            size = f"{len(raw)} bytes" if raw is not None else short(given)
            what = f"a parameter block of {size}; the kernel takes {entry.parameter_bytes} bytes"
            raise ProblemError(what, where=entry.name)
        return raw

    def _bytes(self, given: object, name: str) -> bytes | None:
        """An argument's bytes; None of a number, whose bytes its parameter decides."""
        if isinstance(given, np.ndarray):
            return self._address(given, name).to_bytes(_POINTER_BYTES, "little")
        if isinstance(given, Pointer):
            return given.address.to_bytes(_POINTER_BYTES, "little")
        if isinstance(given, ArrayMap):
            given = given.at(self._address(given.array, name), name)
        if isinstance(given, TensorMap):
            return tensor_map.encode(given)
        if isinstance(given, Struct):
            return self._struct(given, name)
        if isinstance(given, np.generic) and not isinstance(given, np.void):
            return None
        try:
            return memoryview(given).tobytes()  # type: ignore[arg-type]
        except TypeError:
            return None

    def _struct(self, given: Struct, name: str) -> bytes:
        block = bytearray(given.raw)
        for offset, part in given.parts.items():
            where = f"{name}+{offset}"
            raw = part.tobytes() if isinstance(part, np.generic) else self._bytes(part, where)
            if raw is None:
                hint = "give an array, bytes, a tensor map or a number of numpy's, as np.int32(5)"
                raise ProblemError(f"{short(part)} has no size of its own", where=where, hint=hint)
            if offset < 0 or offset + len(raw) > len(block):
                what = f"{len(raw)} bytes at {offset} of {len(block)}"
                raise ProblemError(what, where=where)
            block[offset : offset + len(raw)] = raw
        return bytes(block)

    def _address(self, array: Array, name: str) -> int:
        """Where an array's copy is; it is put there when it is first seen."""
        if id(array) not in self.placed:
            self.placed[id(array)] = array, self.memory.put(_plain(array, name), name)
        return self.placed[id(array)][1]

    def fetch(self) -> None:
        """Copy what the kernel left back into the arrays that may be written."""
        for array, address in self.placed.values():
            if array.flags.writeable:
                raw = self.memory.read(address, array.nbytes)
                array[...] = raw.view(array.dtype).reshape(array.shape)


def arrays_in(given: Sequence[object]) -> Iterator[Array]:
    """The arrays of arguments, those within structs and maps too."""
    for argument in given:
        if isinstance(argument, np.ndarray):
            yield argument
        elif isinstance(argument, ArrayMap):
            yield argument.array
        elif isinstance(argument, Struct):
            yield from arrays_in(list(argument.parts.values()))


def _check_size(size: int, parameter: Parameter) -> None:
    if size != parameter.size:
        what = f"argument of {size} bytes for a parameter of {parameter.size}"
        raise ProblemError(what, where=parameter.name)


def _plain(array: Array, name: str) -> Array:
    """An array whose bytes mean to a kernel what they mean here.

    Raises:
        ProblemError: its elements are Python's objects, or of the other byte order.

    """
    if array.dtype.hasobject or not array.dtype.isnative:
        what = f"an array of {array.dtype!r}: a kernel cannot read its elements"
        raise ProblemError(what, where=name, hint="convert it with `astype`")
    return array


_ELEMENTS = {
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    "bfloat16": "BF16",
}


def _element(array: Array, name: str) -> str:
    """The driver's element for an array's type, where there is one.

    Raises:
        ProblemError: it has none.

    """
    if array.dtype.name not in _ELEMENTS:
        what = f"no tensor map over an array of {array.dtype.name}"
        raise ProblemError(what, where=name, hint="say which `element` it holds, as `U8`")
    return _ELEMENTS[array.dtype.name]


def _named(kind: Any, word: str, name: str) -> Any:  # noqa: ANN401
    """A member of an enumeration by its name.

    Raises:
        ProblemError: there is none.

    """
    if word not in kind.__members__:
        known = ", ".join(kind.__members__)
        raise ProblemError(f"no {kind.__name__.lower()} `{word!s:.40}`", where=name, hint=known)
    return kind[word]
