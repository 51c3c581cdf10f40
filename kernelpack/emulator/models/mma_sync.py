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
class Form:
    """Shape and types of one mma.sync; N is 8."""

    m: int
    k: int
    a: DType
    b: DType
    c: DType
    d: DType
    saturate: bool = False


def check(form: Form) -> None:
    """Refuse a form that is not modelled, by name."""
    shapes, outputs = _FORMS.get((form.a, form.b), (set(), set()))
    if (form.m, form.k) not in shapes or form.c not in outputs or form.d not in outputs:
        types = ".".join(t.label for t in (form.d, form.a, form.b, form.c))
        raise UnsupportedError(f"mma.sync.m{form.m}n8k{form.k} of {types} is not modelled")


def multiply(form: Form, a: Registers, b: Registers, c: Registers, how: mma.Multiply) -> Registers:
    """Registers of D from the (registers, 32) registers of A, B and C."""
    check(form)
    a_matrix = from_codes(a_fragment(form.m, form.k, form.a.bits).matrix(a), form.a)
    b_matrix = from_codes(b_fragment(form.k, form.b.bits).matrix(b), form.b)
    c_matrix = from_codes(d_fragment(form.m, 8, form.c.bits).matrix(c), form.c)
    add_up = _fp8 if form.a in _FP8 else product
    total = add_up(form, a_matrix, b_matrix, c_matrix, how)
    return d_fragment(form.m, 8, form.d.bits).registers(to_codes(total, form.d))


def product(form: Form, a: Matrix, b: Matrix, c: Matrix, how: mma.Multiply) -> Matrix:
    """The numbers of D, of types that tensor cores have themselves."""
    if form.d is DType.I32:
        return mma.integer(a, b, c, saturate=form.saturate)
    if form.d is DType.FP64:
        return double.product(a, b, c, exact=how is mma.exact)
    operands = mma.Operands(a=a, b=b, c=c, a_type=form.a, b_type=form.b)
    return how(operands, mma.Summation(fraction_bits=25, output=form.d))


def _fp8(form: Form, a: Matrix, b: Matrix, c: Matrix, how: mma.Multiply) -> Matrix:
    """Add the products of elements 0 and 1 of every four, then of 2 and 3, then C, rounded."""
    rule = mma.Summation(fraction_bits=25, output=form.d)
    total = None
    for pair in (slice(0, 2), slice(2, 4)):
        halves = [m.reshape(len(m), -1, 4)[..., pair].reshape(len(m), -1) for m in (a, b)]
        operands = mma.Operands(
            a=halves[0], b=halves[1], c=total, a_type=DType.FP16, b_type=DType.FP16
        )
        total = how(operands, rule)
    assert total is not None
    with np.errstate(over="ignore", invalid="ignore"):
        return (total.astype(np.float64) + c).astype(form.d.numpy).astype(np.float32)
