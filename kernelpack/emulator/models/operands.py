"""Bytes and codes of matrix operands, as the numbers that tensor cores multiply."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpack.emulator.models.mma import Summation
from kernelpack.errors import UnsupportedError
from kernelpack.formats import packing
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode, encode

Matrix = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

HALF = Summation(output=DType.FP16)
SINGLE = Summation()


def from_bytes(raw: Bytes, dtype: DType) -> Matrix:
    """Rows of dense bytes as numbers: (rows, k * bits / 8) -> (rows, k)."""
    if dtype.bits < 8:
        return decode(dtype, packing.unpack(raw, dtype.bits))
    width = {8: np.uint8, 16: np.uint16, 32: np.uint32}[dtype.bits]
    return from_codes(np.ascontiguousarray(raw).view(width), dtype)


def from_codes(codes: Matrix, dtype: DType) -> Matrix:
    """Codes as numbers; integers stay integers, tf32 loses the 13 bits it does not have."""
    if dtype is DType.TF32:
        return decode(dtype, codes.astype(np.uint32) & np.uint32(0xFFFF_E000))
    if dtype is DType.FP64:
        return codes.astype(np.uint64).view(np.float64)
    if dtype.is_integer:
        return codes.astype(f"u{dtype.bits // 8}").view(dtype.numpy)
    return decode(dtype, codes)


def to_codes(values: Matrix, dtype: DType) -> Matrix:
    """Numbers of D as codes; they fit already, so nothing is rounded."""
    if dtype is DType.I32:
        return np.ascontiguousarray(values).view(np.uint32)
    if dtype is DType.FP64:
        return np.ascontiguousarray(values).view(np.uint64)
    if dtype is DType.FP32:
        return np.ascontiguousarray(values).view(np.uint32)
    return encode(dtype, values)


def check_pair(a: DType, b: DType, d: DType, allowed: set[tuple[DType, DType, DType]]) -> None:
    """Refuse a combination of types that an instruction does not have."""
    if (a, b, d) not in allowed:
        raise UnsupportedError(f"an MMA of {a.label} and {b.label} into {d.label} is not modelled")
