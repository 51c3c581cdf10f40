"""One warp's part of a wgmma: 16 of the 64 rows, accumulators in registers.

Sources: PTX ISA 9.1, 9.7.15.5; how it adds up: see `mma`. Hopper's fp8 keeps 13 bits: such a sum
is another number than fp32's, not one that was rounded otherwise, so it is exact in every run.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpack.emulator.models import mma
from kernelpack.emulator.models.fragments import a_fragment, d_fragment
from kernelpack.emulator.models.operands import check_pair, from_bytes, from_codes, to_codes
from kernelpack.formats.dtype import DType

Registers = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

ROWS = 16
_FP8 = (DType.E4M3, DType.E5M2)
_BYTES = (DType.I8, DType.U8)
TYPES = (
    {(DType.FP16, DType.FP16, d) for d in (DType.FP16, DType.FP32)}
    | {(t, t, DType.FP32) for t in (DType.BF16, DType.TF32)}
    | {(a, b, d) for a in _FP8 for b in _FP8 for d in (DType.FP16, DType.FP32)}
    | {(a, b, DType.I32) for a in _BYTES for b in _BYTES}
)
"""Types of A, B and D that exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WgmmaShape:
    """The constants of one wgmma: K is 32 bytes; A and B may be negated, D saturated."""

    n: int
    a: DType
    b: DType
    d: DType
    negate_a: bool = False
    negate_b: bool = False
    saturate: bool = False

    @property
    def k(self) -> int:
        """Elements along K."""
        return 256 // self.a.bits


def a_from_bytes(shape: WgmmaShape, raw: Bytes) -> npt.NDArray[Any]:
    """A of one warp from shared memory: (16, 32) bytes -> numbers."""
    return from_bytes(raw, shape.a)


def a_from_registers(shape: WgmmaShape, registers: Registers) -> npt.NDArray[Any]:
    """A of one warp from its (4, 32) registers."""
    return from_codes(a_fragment(ROWS, shape.k, shape.a.bits).matrix(registers), shape.a)


def multiply(
    shape: WgmmaShape,
    a: npt.NDArray[Any],
    b_raw: Bytes,
    d: Registers | None,
    how: mma.Multiply,
) -> Registers:
    """Registers of D from those of the accumulator: (n / 2 or n / 4, 32)."""
    c = None if d is None else accumulator(shape, d)
    return registers(shape, numbers(shape, a, b_raw, c, how))


def accumulator(shape: WgmmaShape, d: Registers) -> npt.NDArray[Any]:
    """Numbers of D, (16, n), from its registers."""
    return from_codes(d_fragment(ROWS, shape.n, shape.d.bits).matrix(d), shape.d)


def registers(shape: WgmmaShape, d: npt.NDArray[Any]) -> Registers:
    """Registers of D from its numbers."""
    return d_fragment(ROWS, shape.n, shape.d.bits).registers(to_codes(d, shape.d))


def numbers(
    shape: WgmmaShape,
    a: npt.NDArray[Any],
    b_raw: Bytes,
    c: npt.NDArray[Any] | None,
    how: mma.Multiply,
) -> npt.NDArray[Any]:
    """Numbers of D, (16, n).

    Args:
        shape: its sizes, types and signs.
        a: numbers of A, (16, k).
        b_raw: bytes of B, (n, 32), K-major.
        c: numbers of the accumulator, None where `scale-d` is false.
        how: `mma.fast` or `mma.exact`, but for fp8.
    """
    check_pair(shape.a, shape.b, shape.d, TYPES)
    b = from_bytes(b_raw, shape.b)
    if shape.d is DType.I32:
        return mma.integer(a, b, c, saturate=shape.saturate)
    operands = mma.Operands(
        a=-a if shape.negate_a else a,
        b=-b if shape.negate_b else b,
        c=c,
        a_type=shape.a,
        b_type=shape.b,
    )
    if shape.a in _FP8:
        return mma.exact(operands, summation(shape))
    return how(operands, summation(shape))


def summation(shape: WgmmaShape) -> mma.Summation:
    """How Hopper adds: 25 bits, fp8 13 bits in and out."""
    if shape.a in _FP8:
        return mma.Summation(fraction_bits=13, output=shape.d, output_bits=13)
    return mma.Summation(fraction_bits=25, output=shape.d)
