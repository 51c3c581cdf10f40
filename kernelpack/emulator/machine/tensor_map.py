"""The 128 bytes that stand for a tensor map inside the emulator.

The driver's own encoding is not public; ours begins with a magic word, and is the same wherever
the bytes are copied, so that a map can lie in parameters, constant or global memory.
"""

import struct
from functools import lru_cache

from kernelpack.emulator.faults import Fault
from kernelpack.spec.tensormap import (
    Element,
    Fill,
    Interleave,
    Promotion,
    Swizzle,
    TensorMap,
)

SIZE = 128
_MAGIC = b"KPTMAP01"
_FORMAT = struct.Struct("<8s6BxxQ5I4Q5H5B")


def encode(tensor_map: TensorMap) -> bytes:
    """A map as 128 bytes."""
    rank = tensor_map.rank
    packed = _FORMAT.pack(
        _MAGIC,
        rank,
        tensor_map.element,
        tensor_map.swizzle,
        tensor_map.interleave,
        tensor_map.fill,
        tensor_map.promotion,
        tensor_map.address,
        *_padded([size - 1 for size in tensor_map.dims], 5),
        *_padded(tensor_map.strides_bytes, 4),
        *_padded(tensor_map.box, 5),
        *_padded(tensor_map.element_strides, 5),
    )
    return packed.ljust(SIZE, b"\0")


def _padded(values: "tuple[int, ...] | list[int]", count: int) -> list[int]:
    return [*values, *[0] * (count - len(values))]


@lru_cache(maxsize=1024)
def decode(raw: bytes) -> TensorMap:
    """The map that 128 bytes stand for.

    Raises:
        Fault: they do not stand for one.
    """
    if raw[:8] != _MAGIC:
        raise Fault("a tensor copy through memory that holds no tensor map")
    _, rank, element, swizzle, interleave, fill, promotion, address, *rest = _FORMAT.unpack(
        raw[: _FORMAT.size]
    )
    return TensorMap(
        name=f"map of {address:#x}",
        element=Element(element),
        address=address,
        dims=tuple(size + 1 for size in rest[:rank]),
        strides_bytes=tuple(rest[5 : 4 + rank]),
        box=tuple(rest[9 : 9 + rank]),
        element_strides=tuple(rest[14 : 14 + rank]),
        swizzle=Swizzle(swizzle),
        interleave=Interleave(interleave),
        fill=Fill(fill),
        promotion=Promotion(promotion),
    )
