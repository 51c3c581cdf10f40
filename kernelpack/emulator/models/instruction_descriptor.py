"""The 32-bit instruction descriptor of tcgen05.mma: shape, types and modifiers of one MMA.

Its bits depend on the `.kind` of the instruction; K is not in it, the kind implies it.
Source: PTX ISA 9.1, 9.7.16.4.2 (tables 42-44), 9.7.16.2.1 (table 39, shapes).
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from kernelpack.emulator import rules
from kernelpack.emulator.models.fault import require
from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType


class Kind(StrEnum):
    """The `.kind::` of a tcgen05.mma."""

    F16 = "f16"
    TF32 = "tf32"
    F8F6F4 = "f8f6f4"
    I8 = "i8"
    MXF8F6F4 = "mxf8f6f4"
    MXF4 = "mxf4"
    MXF4NVF4 = "mxf4nvf4"

    @property
    def is_block_scaled(self) -> bool:
        """Whether A and B have scale factors in tensor memory."""
        return self in (Kind.MXF8F6F4, Kind.MXF4, Kind.MXF4NVF4)

    @property
    def is_padded(self) -> bool:
        """Whether 4- and 6-bit elements are in 8-bit containers or padded chunks."""
        return self in (Kind.F8F6F4, Kind.MXF8F6F4)


_F8F6F4 = {0: DType.E4M3, 1: DType.E5M2, 3: DType.E2M3, 4: DType.E3M2, 5: DType.E2M1}
INPUTS = {
    Kind.F16: {0: DType.FP16, 1: DType.BF16},
    Kind.TF32: {2: DType.TF32},
    Kind.F8F6F4: _F8F6F4,
    Kind.I8: {0: DType.U8, 1: DType.I8},
    Kind.MXF8F6F4: _F8F6F4,
    Kind.MXF4: {1: DType.E2M1},
    Kind.MXF4NVF4: {1: DType.E2M1},
}
OUTPUTS = {
    Kind.F16: {0: DType.FP16, 1: DType.FP32},
    Kind.TF32: {1: DType.FP32},
    Kind.F8F6F4: {0: DType.FP16, 1: DType.FP32},
    Kind.I8: {2: DType.I32},
}
K = {
    Kind.F16: 16,
    Kind.TF32: 8,
    Kind.F8F6F4: 32,
    Kind.I8: 32,
    Kind.MXF8F6F4: 32,
    Kind.MXF4: 64,
    Kind.MXF4NVF4: 64,
}
"""Elements along K of a dense instruction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MmaShape:
    """A decoded descriptor. `m` and `n` are of the whole MMA, both CTAs of a pair together.

    `scale` is the type of the scale factors, None without block scaling; the ids are byte offsets
    in the 32-bit cells that hold them. `reserved` are the bits that must be 0, in their places.
    """

    kind: Kind
    m: int
    n: int
    a: DType
    b: DType
    d: DType = DType.FP32
    negate_a: bool = False
    negate_b: bool = False
    a_mn_major: bool = False
    b_mn_major: bool = False
    saturate: bool = False
    max_shift: int = 0
    scale: DType | None = None
    sfa_id: int = 0
    sfb_id: int = 0
    reserved: int = 0

    @property
    def k(self) -> int:
        """Elements along K."""
        return K[self.kind]


def decode(kind: Kind, raw: int) -> MmaShape:
    """Read a descriptor; an unknown code is a UnitFault, a sparse MMA an UnsupportedError."""
    if raw >> 2 & 1:
        raise UnsupportedError(f"sparse tcgen05.mma.kind::{kind} is not modelled")
    shape = _decode_scaled(kind, raw) if kind.is_block_scaled else _decode_plain(kind, raw)
    return replace(
        shape,
        negate_a=bool(raw >> 13 & 1),
        negate_b=bool(raw >> 14 & 1),
        a_mn_major=bool(raw >> 15 & 1),
        b_mn_major=bool(raw >> 16 & 1),
    )


def _decode_plain(kind: Kind, raw: int) -> MmaShape:
    """Table 42: a D type, M in units of 16."""
    return MmaShape(
        kind=kind,
        m=(raw >> 24 & 0x1F) << 4,
        n=(raw >> 17 & 0x3F) << 3,
        a=_type(INPUTS[kind], raw >> 7 & 7, "A"),
        b=_type(INPUTS[kind], raw >> 10 & 7, "B"),
        d=_type(OUTPUTS[kind], raw >> 4 & 3, "D"),
        saturate=bool(raw >> 3 & 1),
        max_shift=raw >> 30 & 3,
        reserved=raw & (1 << 6 | 1 << 23 | 1 << 29),
    )


def _decode_scaled(kind: Kind, raw: int) -> MmaShape:
    """Tables 43 and 44: scale ids instead of a D type, M in units of 128."""
    is_f4 = kind is not Kind.MXF8F6F4
    if is_f4 and raw >> 31:
        raise UnsupportedError("tcgen05.mma with K = 96 needs sm_103a and is not modelled")
    constant = 0b1011 | 1 << 6 | 7 << 24 | (1 << 12 if is_f4 else 1 << 31)
    return MmaShape(
        kind=kind,
        m=(raw >> 27 & 3) << 7,
        n=(raw >> 17 & 0x3F) << 3,
        a=_type(INPUTS[kind], raw >> 7 & 7, "A"),
        b=_type(INPUTS[kind], raw >> 10 & (3 if is_f4 else 7), "B"),
        scale=DType.UE8M0 if raw >> 23 & 1 else DType.UE4M3,
        sfb_id=raw >> 4 & 3,
        sfa_id=raw >> 29 & 3,
        reserved=raw & constant,
    )


def _type(codes: dict[int, DType], code: int, matrix: str) -> DType:
    require(
        code in codes,
        rules.INSTRUCTION_TYPE_CODE,
        f"type code {code} of matrix {matrix} is invalid for this kind of tcgen05.mma",
    )
    return codes[code]


def encode(shape: MmaShape) -> int:
    """Write a descriptor; what `decode` reads back."""
    kind = shape.kind
    inputs = {dtype: code for code, dtype in INPUTS[kind].items()}
    raw = (
        inputs[shape.a] << 7
        | inputs[shape.b] << 10
        | shape.negate_a << 13
        | shape.negate_b << 14
        | shape.a_mn_major << 15
        | shape.b_mn_major << 16
        | shape.n >> 3 << 17
        | shape.reserved
    )
    if kind.is_block_scaled:
        is_ue8m0 = shape.scale is DType.UE8M0
        scales = shape.sfb_id << 4 | is_ue8m0 << 23 | shape.sfa_id << 29
        return raw | scales | shape.m >> 7 << 27
    outputs = {dtype: code for code, dtype in OUTPUTS[kind].items()}
    rest = outputs[shape.d] << 4 | shape.saturate << 3 | shape.max_shift << 30
    return raw | rest | shape.m >> 4 << 24
