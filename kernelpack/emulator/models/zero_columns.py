"""The zero-column mask of tcgen05.mma.ws: columns of B that count as zero whatever they hold.

A 64-bit descriptor describes runs of 1s (zero) and 0s (use B) for each group of columns that is
in its own lanes: one of N, two of N/2 (M = 64) or four of N/4 (M = 32).
Source: PTX ISA 9.1, 9.7.16.4.3; where its table and its examples differ, the examples.
"""

import numpy as np
import numpy.typing as npt

from kernelpack.errors import UnsupportedError


def zero_columns(raw: int, m: int, n: int) -> npt.NDArray[np.bool_]:
    """One flag a column of B, true where it counts as zero."""
    if not raw >> 39 & 1:
        return np.zeros(n, np.bool_)
    if raw >> 56 & 0x3F:
        raise UnsupportedError("a zero-column mask with a column shift is not modelled")
    groups = 128 // m
    return np.concatenate([_group(raw, index, n // groups) for index in range(groups)])


def _group(raw: int, index: int, columns: int) -> npt.NDArray[np.bool_]:
    """Runs of one group; its first `start` columns of the pattern are left out."""
    ones, zeros = (raw >> 40 & 0xFF) + 1, (raw >> 48 & 0xFF) + 1
    start, begins_with_ones = raw >> (8 * index) & 0xFF, raw >> (32 + index) & 1
    place = (np.arange(columns) + start) % (ones + zeros)
    flags: npt.NDArray[np.bool_] = place < ones if begins_with_ones else place >= zeros
    return flags
