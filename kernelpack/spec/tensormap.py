"""Tensor maps: as a manifest says (`TensorMapSpec`), and with every number known (`TensorMap`).

Every rule of the TMA unit is checked here, once, before any driver is asked; the emulator and the
driver both take the `TensorMap` that `resolve` returns.
Source: CUDA driver API, `cuTensorMapEncodeTiled`; PTX ISA, "Tensors and Tensor maps".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from kernelpack.errors import TensorMapError
from kernelpack.spec.expr import ZERO, Expr, evaluate


class Element(IntEnum):
    """The element of a tensor map; the numbers are the driver's CUtensorMapDataType."""

    U8 = 0
    U16 = 1
    U32 = 2
    I32 = 3
    U64 = 4
    I64 = 5
    FP16 = 6
    FP32 = 7
    FP64 = 8
    BF16 = 9
    FP32_FTZ = 10
    TF32 = 11
    TF32_FTZ = 12
    U4_ALIGN8 = 13  # dense nibbles; dim 0 even
    U4_ALIGN16 = 14  # 16 nibbles in 16 bytes of shared memory
    U6_ALIGN16 = 15


class Swizzle(IntEnum):
    """The bank swizzle of the box in shared memory; the numbers are CUtensorMapSwizzle."""

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3
    B128_ATOM32 = 4
    B128_ATOM32_FLIP8 = 5
    B128_ATOM64 = 6


class Fill(IntEnum):
    """The value of an element outside the tensor; the numbers are CUtensorMapFloatOOBfill."""

    ZERO = 0
    NAN = 1


class Interleave(IntEnum):
    """The layout of channels; the numbers are CUtensorMapInterleave."""

    NONE = 0
    B16 = 1
    B32 = 2


class Promotion(IntEnum):
    """The granularity of L2 fills; the numbers are CUtensorMapL2promotion."""

    NONE = 0
    L2_64B = 1
    L2_128B = 2
    L2_256B = 3


BITS = {
    Element.U8: 8,
    Element.U16: 16,
    Element.U32: 32,
    Element.I32: 32,
    Element.U64: 64,
    Element.I64: 64,
    Element.FP16: 16,
    Element.FP32: 32,
    Element.FP64: 64,
    Element.BF16: 16,
    Element.FP32_FTZ: 32,
    Element.TF32: 32,
    Element.TF32_FTZ: 32,
    Element.U4_ALIGN8: 4,
    Element.U4_ALIGN16: 4,
    Element.U6_ALIGN16: 6,
}
SPAN_BYTES = {Swizzle.B32: 32, Swizzle.B64: 64}
"""The widest inner box of a swizzle; 128 bytes for every other one, no limit without one."""

FLOATS = {
    Element.FP16,
    Element.FP32,
    Element.FP64,
    Element.BF16,
    Element.FP32_FTZ,
    Element.TF32,
    Element.TF32_FTZ,
}
PADDED = {
    Element.U4_ALIGN16: {Swizzle.NONE, Swizzle.B128, Swizzle.B128_ATOM32},
    Element.U6_ALIGN16: {Swizzle.NONE, Swizzle.B128, Swizzle.B128_ATOM32, Swizzle.B128_ATOM64},
}
"""Types that leave gaps in shared memory, with the swizzles that the TMA unit has for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMapSpec:
    """A tensor map as a manifest describes it; sizes are expressions, dimension 0 is innermost.

    `strides_bytes` are those of dimensions 1 and up; `offset_bytes` is added to the argument's
    address.
    """

    name: str
    argument: str
    element: Element
    dims: tuple[Expr, ...]
    strides_bytes: tuple[Expr, ...]
    box: tuple[Expr, ...]
    element_strides: tuple[Expr, ...] = ()
    offset_bytes: Expr = ZERO
    swizzle: Swizzle = Swizzle.NONE
    interleave: Interleave = Interleave.NONE
    fill: Fill = Fill.ZERO
    promotion: Promotion = Promotion.NONE
    gather4: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMap:
    """A tensor map with every number known: elements for `dims` and `box`, bytes for strides.

    Equal maps encode to equal descriptors, so the value is the key of the descriptor cache.
    `gather4` says that rows are copied by `tile::gather4` or `tile::scatter4`, which have rules of
    their own; the descriptor is the same.
    """

    name: str
    element: Element
    address: int
    dims: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: Swizzle = Swizzle.NONE
    interleave: Interleave = Interleave.NONE
    fill: Fill = Fill.ZERO
    promotion: Promotion = Promotion.NONE
    gather4: bool = False

    @property
    def rank(self) -> int:
        """The number of dimensions, 1 to 5."""
        return len(self.dims)

    @property
    def inner_bytes(self) -> int:
        """Bytes of the box's innermost dimension in global memory."""
        return self.box[0] * BITS[self.element] // 8


def resolve(spec: TensorMapSpec, sizes: Mapping[str, float], address: int) -> TensorMap:
    """The map of one call.

    Args:
        spec: the manifest's description.
        sizes: a value for every name in its expressions.
        address: the argument's device address in bytes.

    Raises:
        TensorMapError: a rule of the TMA unit is broken; names the rule and the value.
        ExpressionError: a size cannot be evaluated.

    """

    def numbers(exprs: tuple[Expr, ...]) -> tuple[int, ...]:
        return tuple(evaluate(expr, sizes) for expr in exprs)

    tensor_map = TensorMap(
        name=spec.name,
        element=spec.element,
        address=address + evaluate(spec.offset_bytes, sizes),
        dims=numbers(spec.dims),
        strides_bytes=numbers(spec.strides_bytes),
        box=numbers(spec.box),
        element_strides=numbers(spec.element_strides) or (1,) * len(spec.dims),
        swizzle=spec.swizzle,
        interleave=spec.interleave,
        fill=spec.fill,
        promotion=spec.promotion,
        gather4=spec.gather4,
    )
    check(tensor_map)
    return tensor_map


def check(tensor_map: TensorMap) -> None:
    """Check a map against every rule of the TMA unit.

    Raises:
        TensorMapError: names the map, the rule and the value that breaks it.

    """
    _check_shape(tensor_map)
    _check_memory(tensor_map)
    _check_box(tensor_map)
    _check_element(tensor_map)
    _check_interleave(tensor_map)
    if tensor_map.gather4:
        _check_gather4(tensor_map)


def _require(tensor_map: TensorMap, holds: bool, rule: str, value: object) -> None:
    if not holds:
        raise TensorMapError(f"{rule}, not {value}", where=f"tensor map `{tensor_map.name}`")


def _check_shape(m: TensorMap) -> None:
    _require(m, 1 <= m.rank <= 5, "the rank must be 1 to 5", m.rank)
    _require(m, len(m.strides_bytes) == m.rank - 1, "strides: one fewer than dims", m.strides_bytes)
    _require(m, len(m.box) == m.rank, "the box must have the rank of dims", m.box)
    _require(m, len(m.element_strides) == m.rank, "element strides: one a dim", m.element_strides)
    for size in m.dims:
        _require(m, 1 <= size <= 2**32, "a dimension must be 1 to 2^32 elements", size)
    for stride in m.element_strides:
        _require(m, 1 <= stride <= 8, "an element stride must be 1 to 8", stride)


def align_of(tensor_map: TensorMap) -> int:
    """The alignment of a map's memory, in bytes."""
    is_wide = tensor_map.interleave is Interleave.B32 or tensor_map.element in PADDED
    return 32 if is_wide else 16


def _check_memory(m: TensorMap) -> None:
    align = align_of(m)
    _require(m, 0 <= m.address < 2**64, "the address must fit in 64 bits", hex(m.address))
    _require(
        m,
        m.address % align == 0,
        f"the address must be a multiple of {align} bytes",
        hex(m.address),
    )
    for stride in m.strides_bytes:
        _require(m, stride % align == 0, f"a stride must be a multiple of {align} bytes", stride)
        _require(m, 0 <= stride < 2**40, "a stride must be below 2^40 bytes", stride)


def _check_box(m: TensorMap) -> None:
    for size in m.box:
        _require(m, 1 <= size <= 256, "a box side must be 1 to 256 elements", size)
    if m.interleave is not Interleave.NONE:
        return
    bits = m.box[0] * BITS[m.element]
    _require(m, bits % 128 == 0, "the inner box must be a multiple of 16 bytes", f"{bits / 8:g}")
    if m.swizzle is not Swizzle.NONE:
        span = SPAN_BYTES.get(m.swizzle, 128)
        held = 128 if m.element in PADDED else bits // 8
        rule = f"the inner box must fit the {m.swizzle.name} swizzle's {span} bytes"
        _require(m, held <= span, rule, held)


def _check_element(m: TensorMap) -> None:
    if m.element in PADDED:
        _require(m, m.box[0] == 128, "the inner box of a padded type must be 128", m.box[0])
        _require(m, m.dims[0] % 128 == 0, "dim 0 of a padded type: multiple of 128", m.dims[0])
        known = PADDED[m.element]
        names = ", ".join(swizzle.name for swizzle in Swizzle if swizzle in known)
        rule = f"the swizzle of {m.element.name} must be one of {names}"
        _require(m, m.swizzle in known, rule, m.swizzle.name)
    if m.element is Element.U4_ALIGN8:
        _require(m, m.dims[0] % 2 == 0, "dimension 0 of packed nibbles must be even", m.dims[0])
    if m.fill is Fill.NAN:
        _require(m, m.element in FLOATS, "NaN fill needs a float element", m.element.name)


def _check_interleave(m: TensorMap) -> None:
    if m.interleave is Interleave.NONE:
        return
    _require(m, m.rank >= 3, "the rank of an interleaved map must be 3 to 5", m.rank)
    _require(m, m.element not in PADDED, "a padded type must not be interleaved", m.interleave.name)
    is_swizzled = m.interleave is not Interleave.B32 or m.swizzle is Swizzle.B32
    _require(m, is_swizzled, "the swizzle of interleave B32 must be B32", m.swizzle.name)


def _check_gather4(m: TensorMap) -> None:
    """PTX ISA, 5.5.3.4: four rows of a 2D tensor, each named by an int32, in boxes of one row."""
    _require(m, m.rank == 2, "the rank of a map for gather4 must be 2", m.rank)
    _require(m, m.box[1] == 1, "a box of a map for gather4 must be of one row", m.box[1])
    rows = m.dims[1]
    _require(m, rows <= 2**31, "rows of a map for gather4 must be numbers below 2^31", rows)
