"""Inputs made from a case's seed: packed codes, scales in their atoms, groups.

Scales of padding rows are NaN, so that one that gets into a sum shows; those of padding along K
are zero, as the contract says: they would be multiplied into real rows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.grouped_scales import interleave
from kernelpack.formats.scale_layout import ROWS
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.nvfp4.problem import BLOCK, Case

Bytes = NDArray[np.uint8]
Random = np.random.Generator

LARGEST_CODES = 0x77  # 6 and 6
LARGEST_SCALE, NAN = 0x7E, 0x7F  # 448; e4m3 has no infinity
LARGEST_PRODUCT_BITS = 23  # of 6 * 6 * 448 * 448


def codes(random: Random, case: Case, *rows: int) -> Bytes:
    """Packed codes [*rows, k / 2]: any byte, or the largest."""
    shape = (*rows, case.k // 2)
    if case.is_largest:
        return np.full(shape, LARGEST_CODES, np.uint8)
    return random.integers(0, 256, shape, np.uint8)


def weights(random: Random, case: Case) -> Arrays:
    """`b` [e, n, k / 2] and its scales [e, ceil(n / 128), ceil(k / 64), 32, 4, 4]."""
    shape = (case.e, case.n, case.k // BLOCK)
    scales = random.integers(0, NAN, shape, np.uint8)
    if case.is_largest:
        scales[:] = LARGEST_SCALE
    padded = np.full((case.e, -(-case.n // ROWS) * ROWS, case.k // BLOCK), NAN, np.uint8)
    padded[:, : case.n] = scales
    return {"b": codes(random, case, case.e, case.n), "b_scales": interleave(padded)}


def groups(case: Case, product_bits: int) -> Arrays:
    """Offsets, experts, and scales that bring sums of products of so many bits to about 1."""
    length = case.k.bit_length()
    bits = LARGEST_PRODUCT_BITS + length if case.is_largest else product_bits + length // 2
    numbers: NDArray[Any] = np.arange(1, case.e + 1)
    return {
        "group_offsets": np.array(case.offsets, np.uint32),
        "expert_ids": np.array(case.ids, np.int32),
        "expert_scales": ((1 + numbers / case.e) * 2.0**-bits).astype(np.float32),
    }
