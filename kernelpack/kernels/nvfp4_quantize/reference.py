"""The oracle of the NVFP4 quantiser: the kernel's own operations in fp32, so bit for bit.

Of each block of 16 elements of a row, with its tensor scale s, every operation rounded to nearest:

    scale = e4m3(s * (max |x| * (1/6)))              at most 448; NaN where x holds one
    code  = e2m1(x * (1 / (scale * (1 / s))))        0 where scale is 0

so that x ≈ code * scale / s. It follows:

- NaN in a block makes its scale NaN (0x7F), and with it each of its 16 values.
- Infinity is the largest number: the scale is 448, its code ±6.
- A block whose scale rounds to 0 has codes 0, each with the sign of its x, as zeros have.
- -0 keeps its sign: code 8.
- Tensor scales are taken as they are; those that are not positive and finite mean nothing.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats import grouped_scales, packing
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode, encode
from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.kernels.nvfp4.problem import BLOCK

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

SIXTH = np.float32(1 / 6)  # the largest element becomes the largest code


def quantise(x: NDArray[Any], tensor_scales: Floats) -> tuple[Bytes, Bytes]:
    """Codes [t, k / 2] and scales [t, k / 16] of x [t, k], under a tensor scale for each row."""
    blocks = x.astype(np.float32).reshape(x.shape[0], x.shape[1] // BLOCK, BLOCK)
    tensor = tensor_scales.astype(np.float32)[:, None]
    one = np.float32(1)
    with np.errstate(all="ignore"):  # infinities and NaN go where the formula takes them
        largest = np.abs(blocks).max(-1)
        scales = encode(DType.E4M3, tensor * (largest * SIXTH), satfinite=True).astype(np.uint8)
        kept = decode(DType.E4M3, scales).astype(np.float32)
        factor = np.where(kept == 0, np.float32(0), one / (kept * (one / tensor)))
        codes = encode(DType.E2M1, blocks * factor[..., None], satfinite=True)
    return packing.pack(codes.reshape(x.shape), 4), scales


def row_scales(arrays: Arrays) -> tuple[Floats, NDArray[np.bool_]]:
    """The tensor scale of each row, and whether the row is quantised at all."""
    rows, offsets = arrays["x"].shape[0], arrays["row_offsets"]
    if offsets.size == 0:
        return np.repeat(arrays["tensor_scales"][:1], rows), np.ones(rows, np.bool_)
    ends = offsets.astype(np.int64)
    expert = np.repeat(arrays["expert_ids"], ends[1:] - ends[:-1])
    return arrays["tensor_scales"][np.maximum(expert, 0)], expert >= 0


def expected(arrays: Arrays, scale_blocks: int) -> dict[str, Expected]:
    """Codes and scales to the bit; codes of rows that no expert has are left as they were."""
    tensor, is_written = row_scales(arrays)
    codes, scales = quantise(arrays["x"], tensor)
    scales[~is_written] = 0
    offsets = arrays["row_offsets"] if arrays["row_offsets"].size else [0, tensor.size]
    placed = grouped_scales.interleave_groups(scales, offsets, scale_blocks)
    return {
        "codes": _exactly(np.where(is_written[:, None], codes.astype(np.float64), np.nan)),
        "scales": _exactly(placed.astype(np.float64)),
    }


def _exactly(value: NDArray[np.float64]) -> Expected:
    return Expected(value=value, bound=np.zeros(value.shape))
