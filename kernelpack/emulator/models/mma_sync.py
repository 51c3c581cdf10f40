"""mma.sync: one warp multiplies matrices that it holds in registers.

Dense m16n8 and m8n8 shapes of fp16, bf16, tf32, fp64, fp8 and 8-bit integers.
Sources: PTX ISA 9.1, 9.7.14.5; how it adds up: see `mma`. fp8 is not native on these targets: the
assembler makes two fp16 products of it and adds C at the end (every form measured on an H200).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpack.emulator.models import double, mma
from kernelpack.emulator.models.fragments import a_fragment, b_fragment, d_fragment
from kernelpack.emulator.models.operands import from_codes, to_codes
from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType

Registers = npt.NDArray[Any]
Matrix = npt.NDArray[Any]

_FP8 = (DType.E4M3, DType.E5M2)
_BYTES = (DType.I8, DType.U8)
# (type of A, type of B) -> the (m, k) of its shapes, n is 8; and the types of C and D.
_FORMS: dict[tuple[DType, DType], tuple[set[tuple[int, int]], set[DType]]] = (
    {(DType.FP16, DType.FP16): ({(16, 8), (16, 16)}, {DType.FP16, DType.FP32})}
    | {(DType.BF16, DType.BF16): ({(16, 8), (16, 16)}, {DType.FP32})}
    | {(DType.TF32, DType.TF32): ({(16, 4), (16, 8)}, {DType.FP32})}
    | {(DType.FP64, DType.FP64): ({(8, 4), (16, 4), (16, 8), (16, 16)}, {DType.FP64})}
    | {(a, b): ({(16, 16), (16, 32)}, {DType.FP16, DType.FP32}) for a in _FP8 for b in _FP8}
    | {(a, b): ({(8, 16), (16, 16), (16, 32)}, {DType.I32}) for a in _BYTES for b in _BYTES}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MmaSyncShape:
    """Shape and types of one mma.sync; N is 8."""

    m: int
    k: int
    a: DType
    b: DType
    c: DType
    d: DType
    saturate: bool = False


def check(shape: MmaSyncShape) -> None:
    """Refuse a form that is not modelled, by name."""
    shapes, outputs = _FORMS.get((shape.a, shape.b), (set(), set()))
    if (shape.m, shape.k) not in shapes or shape.c not in outputs or shape.d not in outputs:
        types = ".".join(t.label for t in (shape.d, shape.a, shape.b, shape.c))
        raise UnsupportedError(f"mma.sync.m{shape.m}n8k{shape.k} of {types} is not modelled")


def multiply(
    shape: MmaSyncShape, a: Registers, b: Registers, c: Registers, how: mma.Multiply
) -> Registers:
    """Registers of D from the (registers, 32) registers of A, B and C."""
    check(shape)
    a_matrix = from_codes(a_fragment(shape.m, shape.k, shape.a.bits).matrix(a), shape.a)
    b_matrix = from_codes(b_fragment(shape.k, shape.b.bits).matrix(b), shape.b)
    c_matrix = from_codes(d_fragment(shape.m, 8, shape.c.bits).matrix(c), shape.c)
    add_up = _fp8 if shape.a in _FP8 else product
    total = add_up(shape, a_matrix, b_matrix, c_matrix, how)
    return d_fragment(shape.m, 8, shape.d.bits).registers(to_codes(total, shape.d))


def product(shape: MmaSyncShape, a: Matrix, b: Matrix, c: Matrix, how: mma.Multiply) -> Matrix:
    """The numbers of D, of types that tensor cores have themselves."""
    if shape.d is DType.I32:
        return mma.integer(a, b, c, saturate=shape.saturate)
    if shape.d is DType.FP64:
        return double.product(a, b, c, exact=how is mma.exact)
    operands = mma.Operands(a=a, b=b, c=c, a_type=shape.a, b_type=shape.b)
    return how(operands, mma.Summation(fraction_bits=25, output=shape.d))


def _fp8(shape: MmaSyncShape, a: Matrix, b: Matrix, c: Matrix, how: mma.Multiply) -> Matrix:
    """Add the products of elements 0 and 1 of every four, then of 2 and 3, then C, rounded."""
    rule = mma.Summation(fraction_bits=25, output=shape.d)
    total = None
    for pair in (slice(0, 2), slice(2, 4)):
        halves = [m.reshape(len(m), -1, 4)[..., pair].reshape(len(m), -1) for m in (a, b)]
        operands = mma.Operands(
            a=halves[0], b=halves[1], c=total, a_type=DType.FP16, b_type=DType.FP16
        )
        total = how(operands, rule)
    assert total is not None
    with np.errstate(over="ignore", invalid="ignore"):
        return (total.astype(np.float64) + c).astype(shape.d.numpy).astype(np.float32)
