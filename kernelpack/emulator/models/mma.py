"""The arithmetic of tensor cores: D = A x B^T + C, fast, and exactly as hardware sums.

`fast` sums in float64 and rounds once. `exact` is the truncated fused sum measured on tensor
cores: every product, and C, is aligned to the largest exponent and cut to `fraction_bits` below it;
the cut terms are added without error, and the sum is rounded to the output. Both take the same
operands and give the same kind of answer, so the caller chooses one and passes it on.
Integers (`integer`) have one meaning.
Sources: Xie et al., "MMA-Sim", arXiv 2511.10909; Khattak and Mikaitis, "Accurate Models of NVIDIA
Tensor Cores", arXiv 2512.07004.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import LAYOUTS, Rounding, decode, encode

Matrix = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summation:
    """How one instruction adds up.

    Args:
        fraction_bits: bits kept below the largest exponent of the terms.
        output: fp32 (rounded toward zero) or fp16 (to nearest even).
        output_bits: mantissa bits of an fp32 output that survive.
        group: products that are added without error before they are aligned.
    """

    fraction_bits: int = 25
    output: DType = DType.FP32
    output_bits: int = 23
    group: int = 1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Operands:
    """Numbers of one MMA: A (m, k), B (n, k), C (m, n) or None for zero; float32.

    Scales are (m, blocks) and (n, blocks); each belongs to k / blocks elements of its row. The
    types say which subnormals the elements have.
    """

    a: Matrix
    b: Matrix
    c: Matrix | None
    a_type: DType
    b_type: DType
    a_scales: Matrix | None = None
    b_scales: Matrix | None = None
    scale_type: DType = DType.UE8M0


Multiply: TypeAlias = Callable[[Operands, Summation], Matrix]
"""`fast` or `exact`: the numbers of D, as float32."""

_ONE_THREAD = 1 << 18
"""Products from which on OpenBLAS uses threads: on a busy machine they take 100 times as long."""
_ZERO = -10_000
"""The exponent of zero: a product with a zero never decides where the terms are cut."""
_LEAST = -600
"""Below the exponent of any product but zero."""


def fast(operands: Operands, summation: Summation) -> Matrix:
    """D rounded once from the float64 sum, to nearest even."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _plain_sum(operands).astype(summation.output.numpy).astype(np.float32, copy=False)


def exact(operands: Operands, summation: Summation) -> Matrix:
    """D as hardware gives it; NaN is canonical."""
    plain = _plain_sum(operands)
    if summation.group == 1 and operands.a_scales is None and operands.b_scales is None:
        total = _sum_of_products(operands, summation.fraction_bits)
    else:
        significands, exponents = _terms(operands, summation)
        total = _fused_sum(operands, significands, exponents, summation.fraction_bits)
    if summation.output is DType.FP16:
        rounded = _as_float32(total, DType.FP16, Rounding.RN)
    else:
        rounded = _towards_zero(total, summation.output_bits)
    return np.where(np.isfinite(plain), rounded, _as_float32(plain, DType.FP32, Rounding.RN))


def integer(a: Matrix, b: Matrix, c: Matrix | None, *, saturate: bool = False) -> Matrix:
    """int32 D of 8-bit integers; wraps, or stays within int32 with `saturate`."""
    total = a.astype(np.int64) @ b.astype(np.int64).T
    if c is not None:
        total = total + c
    if saturate:
        total = np.clip(total, np.iinfo(np.int32).min, np.iinfo(np.int32).max)
    return total.astype(np.int32)


def _plain_sum(operands: Operands) -> Matrix:
    """The float64 sum; not finite exactly where hardware's is not."""
    a, b = operands.a.astype(np.float64), operands.b.astype(np.float64)
    if operands.a_scales is not None and operands.b_scales is not None:
        a = a * _per_element(operands.a_scales, a.shape[1])
        b = b * _per_element(operands.b_scales, b.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):
        total = product(a, b)
        return total if operands.c is None else total + operands.c


def product(a: Matrix, b: Matrix) -> Matrix:
    """A B^T by rows of A so few that BLAS does them in one thread."""
    parts = -(-a.size * len(b) // _ONE_THREAD)
    if parts == 1:
        return np.asarray(a @ b.T)
    return np.concatenate([rows @ b.T for rows in np.array_split(a, parts)])


def _per_element(scales: Matrix, k: int) -> Matrix:
    return np.repeat(scales.astype(np.float64), k // scales.shape[1], axis=1)


def _parts(values: Matrix, dtype: DType) -> tuple[Matrix, Matrix]:
    """Significand and exponent: 1 <= |s| < 2, or less for a subnormal."""
    with np.errstate(invalid="ignore"):
        wide = np.where(np.isfinite(values), values, 0).astype(np.float64)
    smallest = -127 if dtype is DType.UE8M0 else _smallest_exponent(dtype)
    exponent = np.maximum(np.frexp(wide)[1] - 1, smallest)
    return np.ldexp(wide, -exponent), np.where(wide == 0, _ZERO, exponent)


def _smallest_exponent(dtype: DType) -> int:
    return LAYOUTS[DType.E4M3 if dtype is DType.UE4M3 else dtype].smallest_exponent


def _terms(operands: Operands, summation: Summation) -> tuple[Matrix, Matrix]:
    """Significands and exponents of the products: (m, n, terms) each."""
    a, a_exponent = _parts(operands.a, operands.a_type)
    b, b_exponent = _parts(operands.b, operands.b_type)
    k, group = a.shape[1], summation.group
    if group == 1:
        significands = a[:, None] * b[None]
        exponents = a_exponent[:, None] + b_exponent[None]
    else:
        a, b = np.ldexp(a, a_exponent), np.ldexp(b, b_exponent)
        grouped = (a.reshape(len(a), -1, group), b.reshape(len(b), -1, group))
        significands = np.einsum("mgk,ngk->mng", *grouped)
        exponents = np.zeros(significands.shape, np.int64)
    if operands.a_scales is None or operands.b_scales is None:
        return significands, exponents
    return _scaled(operands, significands, exponents, k // group)


def _scaled(
    operands: Operands, significands: Matrix, exponents: Matrix, terms: int
) -> tuple[Matrix, Matrix]:
    assert operands.a_scales is not None
    assert operands.b_scales is not None
    repeats = terms // operands.a_scales.shape[1]
    for axis, scales in ((1, operands.a_scales), (0, operands.b_scales)):
        significand, exponent = _parts(scales, operands.scale_type)
        significands = significands * np.expand_dims(np.repeat(significand, repeats, 1), axis)
        exponents = exponents + np.expand_dims(np.repeat(exponent, repeats, 1), axis)
    return significands, exponents


def _fused_sum(
    operands: Operands, significands: Matrix, exponents: Matrix, fraction_bits: int
) -> Matrix:
    """Align, cut, add: the sum as float64, which holds it without error."""
    c = np.zeros(exponents.shape[:2]) if operands.c is None else operands.c
    c_significand, c_exponent = _parts(c, DType.FP32)
    largest = np.maximum(exponents.max(-1), c_exponent)
    shifts = fraction_bits + exponents - largest[..., None]
    total = np.trunc(np.ldexp(significands, shifts)).sum(-1)
    total = total + np.trunc(np.ldexp(c_significand, fraction_bits + c_exponent - largest))
    aligned: Matrix = np.ldexp(total, largest - fraction_bits)
    return aligned


def _sum_of_products(operands: Operands, fraction_bits: int) -> Matrix:
    """`_fused_sum` of products without scales, which float64 holds: a fifth of its time."""
    a, b, c = (_finite(m) for m in (operands.a.T, operands.b.T, _addend(operands)))
    exponents = (_parts(a, operands.a_type)[1], _parts(b, operands.b_type)[1])
    a_exponent, b_exponent = (e.astype(np.int16) for e in exponents)
    largest = (a_exponent[:, :, None] + b_exponent[:, None]).max(0).astype(np.int64)
    largest = np.maximum(np.maximum(largest, _parts(c, DType.FP32)[1]), _LEAST)
    factor = np.ldexp(1.0, fraction_bits - largest)
    terms = a[:, :, None] * b[:, None]
    terms *= factor
    total = np.trunc(terms, out=terms).sum(0) + np.trunc(c * factor)
    aligned: Matrix = np.ldexp(total, largest - fraction_bits)
    return aligned


def _addend(operands: Operands) -> Matrix:
    return np.zeros((len(operands.a), len(operands.b))) if operands.c is None else operands.c


def _finite(values: Matrix) -> Matrix:
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(values), values, 0).astype(np.float64)


def _towards_zero(total: Matrix, bits: int) -> Matrix:
    """Cut to `bits` of mantissa; beyond the range of fp32 is infinity, not its largest number."""
    cut = decode(DType.FP32, encode(DType.FP32, total, Rounding.RZ))
    mask = np.uint32(0xFFFF_FFFF << (23 - bits) & 0xFFFF_FFFF)
    cut = (cut.view(np.uint32) & mask).view(np.float32)
    infinity = np.copysign(np.float32(np.inf), total).astype(np.float32)
    return np.where(np.abs(total) >= 2.0**128, infinity, cut)


def _as_float32(values: Matrix, output: DType, rounding: Rounding) -> Matrix:
    return decode(output, encode(output, values, rounding))
