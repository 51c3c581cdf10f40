"""The 128 bytes that stand for a tensor map inside the emulator.

The driver's own encoding is not public; ours begins with a magic word, and is the same wherever
the bytes are copied, so that a map can lie in parameters, constant or global memory. A kernel
may change its fields one by one, from zeros on (`tensormap.replace`); then the whole is checked
against the rules of the TMA unit when it is used.
"""

import struct
from functools import lru_cache

from kernelpack.emulator.faults import Fault
from kernelpack.errors import TensorMapError
from kernelpack.spec.tensormap import (
    Element,
    Fill,
    Interleave,
    Promotion,
    Swizzle,
    TensorMap,
    check,
)

SIZE = 128
_MAGIC = b"KPTMAP01"
_FORMAT = struct.Struct("<8s8BQ5I4Q5H5B")
_BLANK = (_MAGIC, *[0] * 28)
_CHANGED = 8
"""The value that says that a kernel changed the map."""
_FIELDS = {
    "rank": 1,
    "elemtype": 2,
    "swizzle_mode": 3,
    "interleave_layout": 4,
    "fill_mode": 5,
    "swizzle_atomicity": 7,
    "global_address": 9,
    "global_dim": 10,
    "global_stride": 15,
    "box_dim": 19,
    "element_stride": 24,
}
"""The first value of each field, by the name that `tensormap.replace` has for it."""
SIDES = {"global_dim": 5, "global_stride": 4, "box_dim": 5, "element_stride": 5}
"""Fields of several values, and how many."""
CHOICES = {
    "elemtype": (*range(8), Element.FP32_FTZ, Element.FP64, Element.BF16, *range(11, 16)),
    "interleave_layout": tuple(Interleave),
    "swizzle_mode": (0, 1, 2, 3),
    "swizzle_atomicity": (0, 1, 2, 3),
    "fill_mode": tuple(Fill),
}
"""The meaning of PTX's table 33; its numbers of elements are not the driver's."""
_SWIZZLES = {
    (0, 0): Swizzle.NONE,
    (1, 0): Swizzle.B32,
    (2, 0): Swizzle.B64,
    (3, 0): Swizzle.B128,
    (3, 1): Swizzle.B128_ATOM32,
    (3, 2): Swizzle.B128_ATOM32_FLIP8,
    (3, 3): Swizzle.B128_ATOM64,
}
"""By mode and atomicity."""
_NUMBERS = {swizzle: numbers for numbers, swizzle in _SWIZZLES.items()}


def encode(tensor_map: TensorMap) -> bytes:
    """A map as 128 bytes."""
    mode, atomicity = _NUMBERS[tensor_map.swizzle]
    packed = _FORMAT.pack(
        _MAGIC,
        tensor_map.rank,
        tensor_map.element,
        mode,
        tensor_map.interleave,
        tensor_map.fill,
        tensor_map.promotion,
        atomicity,
        0,
        tensor_map.address,
        *_padded([size - 1 for size in tensor_map.dims], 5),
        *_padded(tensor_map.strides_bytes, 4),
        *_padded(tensor_map.box, 5),
        *_padded(tensor_map.element_strides, 5),
    )
    return packed.ljust(SIZE, b"\0")


def _padded(values: "tuple[int, ...] | list[int]", count: int) -> list[int]:
    return [*values, *[0] * (count - len(values))]


def replaced(raw: bytes, field: str, ordinal: int, value: int) -> bytes:
    """The bytes of a map with another value of one field; zeros are a map of nothing.

    Raises:
        Fault: they are no map's.
    """
    if raw[:8] != _MAGIC and any(raw):
        raise Fault("tensormap.replace of memory that holds no tensor map, nor zeros")
    values = list(_FORMAT.unpack(raw[: _FORMAT.size]) if raw[:8] == _MAGIC else _BLANK)
    values[_FIELDS[field] + ordinal] = _stored(field, value)
    values[_CHANGED] = 1
    return _FORMAT.pack(*values).ljust(SIZE, b"\0")


def _stored(field: str, value: int) -> int:
    """A field's value as it is kept; one that no map has stays one that none has."""
    if field in CHOICES:
        return int(CHOICES[field][value])
    most = {"box_dim": 0xFFFF, "element_stride": 0xFF, "rank": 0xFF}
    if field == "rank":
        value += 1
    elif field == "global_dim":
        value = value - 1 & 0xFFFF_FFFF
    return min(value, most.get(field, value))


@lru_cache(maxsize=1024)
def decode(raw: bytes) -> TensorMap:
    """The map that 128 bytes stand for.

    Raises:
        Fault: they do not stand for one, or for one that the TMA unit does not take.
    """
    if raw[:8] != _MAGIC:
        raise Fault("a tensor copy through memory that holds no tensor map")
    values = _FORMAT.unpack(raw[: _FORMAT.size])
    try:
        found = _map(values)
        if values[_CHANGED]:
            check(found)
    except TensorMapError as error:
        raise Fault(f"a tensor copy through a map that the kernel made: {error.what}") from error
    return found


def _map(values: tuple[int, ...]) -> TensorMap:
    _, rank, element, mode, interleave, fill, promotion, atomicity, _, address, *rest = values
    if (mode, atomicity) not in _SWIZZLES:
        raise TensorMapError(f"no swizzle has the mode {mode} and the atomicity {atomicity}")
    if rank > 5:
        raise TensorMapError(f"the rank must be 1 to 5, not {rank}")
    return TensorMap(
        name=f"map of {address:#x}",
        element=Element(element),
        address=address,
        dims=tuple(size + 1 for size in rest[:rank]),
        strides_bytes=tuple(rest[5 : 4 + rank]),
        box=tuple(rest[9 : 9 + rank]),
        element_strides=tuple(rest[14 : 14 + rank]),
        swizzle=_SWIZZLES[mode, atomicity],
        interleave=Interleave(interleave),
        fill=Fill(fill),
        promotion=Promotion(promotion),
    )
