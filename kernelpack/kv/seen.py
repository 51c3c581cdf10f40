"""An array as an op sees it, brought to the four sides [blocks, rows, heads, elements]."""

from operator import index
from typing import Protocol, SupportsIndex

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.sides import Sides, row_major

_OF_LAYERS = 6
"""Sides of a cache of all layers: [blocks, halves, layers, page, heads, row]."""


class Seen(Protocol):
    """Sides, strides in elements (None: row-major), and element type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each side."""

    @property
    def strides(self) -> tuple[int, ...] | None:
        """Elements from one to the next along each side."""

    @property
    def dtype(self) -> DType:
        """The element type."""


def cache_sides(
    kind: str, member: str, seen: Seen, half: SupportsIndex, layer: SupportsIndex | None
) -> Sides:
    """One layer's half of a cache.

    Args:
        kind: the storage, for messages.
        member: its member that holds the array; `scales` have one side less where that is 1.
        seen: the array.
        half: 0 keys, 1 values.
        layer: the layer; None: the only one.

    Raises:
        ProblemError: it has another number of sides, there is no such layer or half, or there are
            several layers and none is named.

    """
    half, is_named = _number(kind, "half", half), layer is not None
    layer = 0 if layer is None else _number(kind, "layer", layer)
    if len(seen.shape) != _OF_LAYERS:
        _require(layer == 0, kind, f"`layer` must be 0 where `{member}` has one layer", layer)
        _require(half == 0, kind, f"`half` must be 0 where `{member}` has one", half)
        return row_sides(kind, member, seen, outer=2, is_scales=member == "scales", layered=True)
    strides = seen.strides or row_major(seen.shape)
    blocks, halves, layers, *inner = seen.shape
    _require(0 <= half < halves, kind, f"`half` must be 0 to {halves - 1}", half)
    rule = f"`layer` must be 0 to {layers - 1}"
    _require(is_named or layers <= 1, kind, rule, "left out: or give a view of one layer")
    _require(0 <= layer < layers, kind, rule, layer)
    return Sides(
        kind=kind,
        member=member,
        shape=(blocks, inner[0], inner[1], inner[2]),
        strides=(strides[0], strides[3], strides[4], strides[5]),
        dtype=seen.dtype,
        offset=half * strides[1] + layer * strides[2],
    )


def _number(kind: str, name: str, value: SupportsIndex) -> int:
    """A number that counts, of Python or of any framework; True and 2.0 are not."""
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None:
        raise ProblemError(f"`{name}` must be an integer, not {value!r}", where=f"kv.{kind}")
    return number


def row_sides(
    kind: str,
    member: str,
    seen: Seen,
    *,
    outer: int,
    is_scales: bool = False,
    layered: bool = False,
) -> Sides:
    """An array of rows, with `outer` sides before the row's own.

    Args:
        kind: the storage, for messages.
        member: its member that holds the array.
        seen: the array.
        outer: 2 where sequences or blocks have a side, 1 where rows lie one after another.
        is_scales: whether the row's sides may be left out.
        layered: whether sides for layers would have done too, for messages.

    Raises:
        ProblemError: it has another number of sides.

    """
    shape, strides = seen.shape, seen.strides or row_major(seen.shape)
    inner = len(shape) - outer
    least = 0 if is_scales else 1
    known = [*range(outer + least, outer + 3), *([_OF_LAYERS] if layered else [])]
    rule = f"`{member}` must have {', '.join(map(str, known[:-1]))} or {known[-1]} sides"
    _require(least <= inner <= 2, kind, rule, f"the shape {list(shape)}")
    heads, size = (1, 1, *shape[outer:])[-2:]  # one head, one element, where a side is left out
    head_step, step = (1, 1, *strides[outer:])[-2:]
    return Sides(
        kind=kind,
        member=member,
        shape=(shape[0] if outer > 1 else 1, shape[outer - 1], heads, size),
        strides=(strides[0], strides[outer - 1], head_step, step),
        dtype=seen.dtype,
    )


def _require(holds: bool, kind: str, rule: str, found: object) -> None:
    if not holds:
        raise ProblemError(f"{rule}, not {found}", where=f"kv.{kind}")
