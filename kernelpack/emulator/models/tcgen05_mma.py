"""One tcgen05.mma of one CTA: operand bytes in, the words of D out.

Sources: PTX ISA 9.1, 9.7.16.10; how it adds up: see `mma`, F = 25 for all kinds but the FP4 ones,
which add 16 products exactly and keep 35 bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpack.emulator.models import mma
from kernelpack.emulator.models.instruction_descriptor import Kind, MmaShape
from kernelpack.emulator.models.operands import from_bytes, from_codes, to_codes
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode

Matrix = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Inputs:
    """One CTA's part: its rows of A and D, all rows of B.

    `a` is (rows, K bytes) and `b` (n, K bytes), dense, as `operand_addresses` gives them; `d` the
    words of the accumulator, None where its input is disabled. Scales are codes, (rows, blocks)
    and (n, blocks). `scale_d` is the immediate: D is divided by 2 to that power. `zeros` are the
    columns of B that count as zero (`.ws` only).
    """

    a: Bytes
    b: Bytes
    d: Words | None
    a_scales: Bytes | None = None
    b_scales: Bytes | None = None
    scale_d: int = 0
    zeros: npt.NDArray[np.bool_] | None = None


def multiply(shape: MmaShape, inputs: Inputs, how: mma.Multiply) -> Words:
    """Words of D: (rows, n), 16-bit results in the low half."""
    a = from_bytes(inputs.a, shape.a)
    b = from_bytes(inputs.b, shape.b)
    if inputs.zeros is not None:
        b = np.where(inputs.zeros[:, None], b.dtype.type(0), b)
    c = None if inputs.d is None else from_codes(inputs.d, shape.d)
    if shape.kind is Kind.I8:
        return to_codes(mma.integer(a, b, c, saturate=shape.saturate), DType.I32)
    if c is not None and inputs.scale_d:
        c = np.ldexp(c, -inputs.scale_d)
    operands = mma.Operands(
        a=-a if shape.negate_a else a,
        b=-b if shape.negate_b else b,
        c=c,
        a_type=shape.a,
        b_type=shape.b,
        a_scales=_scales(shape, inputs.a_scales),
        b_scales=_scales(shape, inputs.b_scales),
        scale_type=shape.scale or DType.UE8M0,
    )
    return to_codes(how(operands, summation(shape)), shape.d)


def multiply_groups(
    shape: MmaShape, groups: Sequence[Bytes], inputs: Inputs, how: mma.Multiply
) -> Words:
    """As `multiply`, for A in tensor memory: each group of lanes has its own part of N.

    `groups` is A of each group; that of `inputs` counts for nothing. Groups that agree, the usual
    case, are one product.
    """
    first, *others = groups
    if all(np.array_equal(first, other) for other in others):
        return multiply(shape, replace(inputs, a=first), how)
    width = shape.n // len(groups)
    parts = (slice(g * width, (g + 1) * width) for g in range(len(groups)))
    products = [
        multiply(shape, _columns(inputs, a, part), how)
        for a, part in zip(groups, parts, strict=True)
    ]
    return np.concatenate(products, axis=1)


def _columns(inputs: Inputs, a: Bytes, part: slice) -> Inputs:
    """The inputs of some columns of D, which another A makes."""
    return replace(
        inputs,
        a=a,
        b=inputs.b[part],
        d=None if inputs.d is None else inputs.d[:, part],
        b_scales=None if inputs.b_scales is None else inputs.b_scales[part],
        zeros=None if inputs.zeros is None else inputs.zeros[part],
    )


def summation(shape: MmaShape) -> mma.Summation:
    """How hardware adds the products of a kind."""
    if shape.kind in (Kind.MXF4, Kind.MXF4NVF4):
        return mma.Summation(fraction_bits=35, group=16)
    return mma.Summation(fraction_bits=25, output=shape.d)


def _scales(shape: MmaShape, codes: Bytes | None) -> Matrix | None:
    if shape.scale is None or codes is None:
        return None
    return decode(shape.scale, codes)
