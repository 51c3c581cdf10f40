"""The oracle of the grouped GEMMs in float64, from the packed bytes that a kernel gets.

Each element is bound by one rounding of the value and the error of summing in fp32; a wrong scale
of 16 elements is far beyond that. Rows of groups without an expert are to stay as they were.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.formats.grouped_scales import deinterleave
from kernelpack.formats.narrow import decode
from kernelpack.formats.packing import unpack
from kernelpack.kernels.bounds import Doubles, bound
from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.kernels.nvfp4.problem import BLOCK, LARGEST_SCALE_BYTE

Bytes = NDArray[np.uint8]

_PAIRS: Doubles = decode(DType.E2M1, unpack(np.arange(256, dtype=np.uint8)[:, None], 4)).astype(
    np.float64
)
"""The two elements of each byte, the low nibble's first: [256, 2]."""


def decoded(packed: Bytes, scales: Bytes) -> Doubles:
    """The values [rows, k] of codes [rows, k / 2] and their scales [rows, k / 16].

    Raises:
        ProblemError: a scale's byte is above 0x7F, and what bit 7 does is not defined.

    """
    if (scales > LARGEST_SCALE_BYTE).any():
        largest = f"{LARGEST_SCALE_BYTE:#x}"
        raise ProblemError(f"no value is defined for a scale of {scales.max():#x}, above {largest}")
    rows, columns = packed.shape
    blocks = _PAIRS[packed].reshape(rows, 2 * columns // BLOCK, BLOCK)
    values = blocks * decode(DType.E4M3, scales)[:, :, None].astype(np.float64)
    return values.reshape(rows, 2 * columns)


def expected(arrays: Arrays, tokens: Doubles, out_dtype: DType) -> Expected:
    """`c` [t, n] and the bound of each element, from the values of a [t, k]."""
    offsets, scales = arrays["group_offsets"], arrays["expert_scales"]
    shape = (tokens.shape[0], arrays["b"].shape[1])
    value, magnitude = np.full(shape, np.nan), np.zeros(shape)
    for group, expert in enumerate(arrays["expert_ids"]):
        low, high = int(offsets[group]), int(offsets[group + 1])
        if expert >= 0 and high > low:
            rows, weights = tokens[low:high], _weights(arrays, int(expert))
            scale = float(scales[expert])
            value[low:high] = rows @ weights.T * scale
            magnitude[low:high] = np.abs(rows) @ np.abs(weights).T * abs(scale)
    return Expected(value=value, bound=bound(value, magnitude, out_dtype))


def _weights(arrays: dict[str, NDArray[Any]], expert: int) -> Doubles:
    """An expert's weights [n, k]."""
    packed = arrays["b"][expert]
    n, columns = packed.shape
    return decoded(packed, deinterleave(arrays["b_scales"][expert], n, 2 * columns // BLOCK))
