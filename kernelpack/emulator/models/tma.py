"""The TMA unit: which bytes of global memory a box is, and where they are in shared memory.

A box is written row after row, dimension 0 fastest, then permuted by the swizzle; with a swizzle
every row starts a new line of the pattern, however short it is. Bytes outside the tensor are filled
on loads and left alone on stores. Padded sub-byte types put 16 elements into 16 bytes of shared
memory; the padding is not touched, and only the packed bytes are counted.
Interleaved layouts and im2col are not modelled.
Sources: PTX ISA 9.1, 5.5 (tensors), 9.7.9.27.1 (cp.async.bulk.tensor); CUDA driver API,
cuTensorMapEncodeTiled. Measured on an H200, and in neither: the pitch of short rows, boxes that
must start at 16 bytes, stores that trap at negative coordinates, the NaN of the fill, tf32's
rounding, and that ftz types are loaded as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpack.emulator import rules
from kernelpack.emulator.machine.memory import cells_of
from kernelpack.emulator.models import swizzle as swizzles
from kernelpack.emulator.models.fault import require
from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import encode
from kernelpack.spec.tensormap import BITS, PADDED, Element, Fill, Interleave, Swizzle, TensorMap

Addresses = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_CHUNK = 16
"""Bytes of shared memory that hold 16 elements of a padded type; the alignment of rows."""
_MOST = 1 << 20
"""Bytes, or elements of a box, that no copy moves: shared memory has 227 KiB."""
_ROUNDING = {Element.FP32_FTZ, Element.TF32, Element.TF32_FTZ}
_NAN = b"\xf7\x7f"
"""The fill for float types of every width: a NaN in each 16 bits, hence in all."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BoxCopy:
    """One box: `shared[i]` holds byte i of it, in the order in which it lies in global memory.

    `cells` are the 4-byte cells of `shared`. `remote` has a global address for each byte that is
    inside the tensor, in order; `inside` says which ones are. `fill` is what a load writes to the
    others. `tx_bytes` is what the load adds to the transactions of its mbarrier: the whole box,
    outside included.
    """

    shared: Addresses
    cells: tuple[Addresses, bool]
    remote: Addresses
    inside: Mask
    fill: Bytes
    tx_bytes: int

    def filled(self, data: Bytes) -> Bytes:
        """The bytes that a load writes, given those inside the tensor."""
        if data.size == self.fill.size:
            return data
        whole = self.fill.copy()
        whole[self.inside] = data
        return whole


def tile(tensor_map: TensorMap, coordinates: Sequence[int], shared_address: int) -> BoxCopy:
    """Plan a tiled copy in either direction; `coordinates` are elements, dimension 0 first."""
    require(
        len(coordinates) == tensor_map.rank,
        rules.TMA_RANK,
        f"{len(coordinates)} coordinates for the {tensor_map.rank}-dimensional {_name(tensor_map)}",
    )
    strides = tensor_map.element_strides
    elements = prod(-(-size // step) for size, step in zip(tensor_map.box, strides, strict=True))
    require(elements <= _MOST, rules.BOUNDS, f"a copy of {elements} elements")
    outer = [
        start + stride * np.arange(-(-size // stride))
        for start, size, stride in zip(
            coordinates[1:], tensor_map.box[1:], strides[1:], strict=True
        )
    ]
    return _plan(tensor_map, coordinates[0], outer, shared_address)


def gather4(
    tensor_map: TensorMap, column: int, rows: Sequence[int], shared_address: int
) -> BoxCopy:
    """Plan `tile::gather4` or `tile::scatter4`: four rows of a 2D tensor, stored one after another.

    Rows outside the tensor, negative ones included, are filled (gather) or skipped (scatter).
    """
    require(
        tensor_map.rank == 2 and tensor_map.box[1] == 1 and len(rows) == 4,
        rules.TMA_GATHER,
        f"gather4 and scatter4 need a 2D map with boxes of one row; {_name(tensor_map)} has "
        f"box {tensor_map.box}",
    )
    return _plan(tensor_map, column, [np.array(rows, np.int64)], shared_address)


def check_storable(tensor_map: TensorMap) -> None:
    """Refuse to store or reduce through a map whose elements change on the way."""
    if tensor_map.element in PADDED or tensor_map.element in _ROUNDING:
        kind = tensor_map.element.name
        raise UnsupportedError(f"storing through {_name(tensor_map)} of {kind} is not modelled")


def check_store_start(tensor_map: TensorMap, coordinates: Sequence[int]) -> None:
    """Fault where a store or reduction starts below 0; only its far end is clipped."""
    require(
        min(coordinates) >= 0,
        rules.TMA_STORE_COORDINATE,
        f"store through {_name(tensor_map)} at {tuple(coordinates)}: it must not start below 0",
    )


def rounded(tensor_map: TensorMap, data: Bytes) -> Bytes:
    """The loaded form of the bytes inside the tensor: tf32 is rounded to nearest even."""
    if tensor_map.element not in (Element.TF32, Element.TF32_FTZ):
        return data
    return encode(DType.TF32, data.view(np.float32)).view(np.uint8)


def check_bulk(shared_address: int, global_address: int, size: int) -> None:
    """Fault unless cp.async.bulk accepts these: everything a multiple of 16 bytes."""
    require(size <= _MOST, rules.BOUNDS, f"a bulk copy of {size} bytes")
    require(
        (shared_address | global_address | size) % 16 == 0,
        rules.BULK_ALIGNMENT,
        f"bulk copy of {size} bytes between {global_address:#x} and shared {shared_address:#x}; "
        "addresses and size must be multiples of 16",
    )


def check_ignored(left: int, right: int, size: int) -> None:
    """Fault unless `.ignore_oob` may leave so many bytes out at either end."""
    require(
        max(left, right) < _CHUNK and left + right <= size,
        rules.BOUNDS,
        f"a bulk copy of {size} bytes ignores {left} on the left and {right} on the right; "
        "0 to 15 may be",
    )


def _plan(
    tensor_map: TensorMap, column: int, outer: list[npt.NDArray[Any]], shared_address: int
) -> BoxCopy:
    """Rows are the product of `outer`, the last dimension slowest; bytes of a row follow."""
    if tensor_map.interleave is not Interleave.NONE:
        raise UnsupportedError(f"{_name(tensor_map)} is interleaved, which is not modelled")
    require(
        shared_address % 128 == 0,
        rules.TMA_ALIGNMENT,
        f"shared address {shared_address:#x} of a tensor copy must be a multiple of 128",
    )
    offsets, rows_inside = _rows(tensor_map, outer)
    byte, bytes_inside = _bytes(tensor_map, column)
    inside = (rows_inside[:, None] & bytes_inside).ravel()
    remote = (tensor_map.address + offsets[:, None] + byte).ravel()
    shared, cells = _shared(tensor_map, len(offsets), shared_address)
    return BoxCopy(
        shared=shared,
        cells=cells,
        remote=remote if inside.all() else remote[inside],
        inside=inside,
        fill=_fill(tensor_map, inside.size),
        tx_bytes=inside.size,
    )


def _rows(
    tensor_map: TensorMap, outer: list[npt.NDArray[Any]]
) -> tuple[npt.NDArray[np.int64], Mask]:
    """Byte offset of each row of the box, and whether its outer coordinates are inside."""
    offsets, inside = np.zeros(1, np.int64), np.ones(1, np.bool_)
    for dim in reversed(range(len(outer))):
        index = outer[dim]
        ok = (index >= 0) & (index < tensor_map.dims[dim + 1])
        offsets = (offsets[:, None] + index * tensor_map.strides_bytes[dim]).ravel()
        inside = (inside[:, None] & ok).ravel()
    return offsets, inside


def _bytes(tensor_map: TensorMap, column: int) -> tuple[npt.NDArray[np.int64], Mask]:
    """Byte offset of each byte of a row, and whether it is inside dimension 0."""
    bits = BITS[tensor_map.element]
    require(
        column * bits % (8 * _CHUNK) == 0,
        rules.TMA_COORDINATE,
        f"coordinate {column} of {_name(tensor_map)} is {column * bits / 8:g} bytes into its row; "
        f"it must be a multiple of {_CHUNK}",
    )
    byte = column * bits // 8 + np.arange(tensor_map.inner_bytes)
    return byte, (byte >= 0) & (byte < tensor_map.dims[0] * bits // 8)


def _shared(
    tensor_map: TensorMap, rows: int, address: int
) -> tuple[Addresses, tuple[Addresses, bool]]:
    row_bytes = tensor_map.inner_bytes
    chunk = 2 * BITS[tensor_map.element] if tensor_map.element in PADDED else _CHUNK
    return _placed(address, (rows, row_bytes, chunk), tensor_map.swizzle)


@lru_cache(maxsize=256)
def _placed(
    start: int, shape: tuple[int, int, int], swizzle: Swizzle
) -> tuple[Addresses, tuple[Addresses, bool]]:
    """Addresses of rows x row bytes, `chunk` of them in every 16, and their cells.

    Kept, for the stages of a ring come round again and again.
    """
    rows, row_bytes, chunk = shape
    byte = np.arange(row_bytes)
    byte = byte // chunk * _CHUNK + byte % chunk
    pitch = row_bytes // chunk * _CHUNK
    if swizzle is not Swizzle.NONE:
        pitch = swizzles.PATTERNS[swizzle].span_bytes
    addresses = start + np.arange(rows)[:, None] * pitch + byte
    swizzled = swizzles.apply(swizzle, addresses.ravel()).astype(np.intp)
    return swizzled, cells_of(swizzled)


def _fill(tensor_map: TensorMap, size: int) -> Bytes:
    if tensor_map.fill is Fill.ZERO:
        return np.zeros(size, np.uint8)
    return np.tile(np.frombuffer(_NAN, np.uint8), size // len(_NAN))


def _name(tensor_map: TensorMap) -> str:
    return f"tensor map `{tensor_map.name}`"
