"""The oracle of the NVFP4 grouped GEMM: tokens decoded, then the shared GEMM in float64."""

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.formats.grouped_scales import deinterleave
from kernelpack.formats.scale_layout import ROWS
from kernelpack.kernels.bounds import Doubles
from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.kernels.nvfp4 import oracle
from kernelpack.kernels.nvfp4.problem import BLOCK


def expected(arrays: Arrays, out_dtype: DType) -> Expected:
    """`c` [t, n] and the bound of each element."""
    return oracle.expected(arrays, tokens(arrays), out_dtype)


def tokens(arrays: Arrays) -> Doubles:
    """The values of a [t, k]; row i of group g has the scales of row i of its first block on.

    Rows of a group without an expert are zero: their scales may be anything.
    """
    packed, blocks = arrays["a"], 2 * arrays["a"].shape[1] // BLOCK
    scales = deinterleave(arrays["a_scales"], arrays["a_scales"].shape[0] * ROWS, blocks)
    starts = arrays["group_offsets"].astype(np.int64)
    first = (starts[:-1] // ROWS + arrays["group_scale_offsets"]) * ROWS
    rows = np.arange(packed.shape[0]) + np.repeat(first - starts[:-1], np.diff(starts))
    takes_part = np.repeat(arrays["expert_ids"] >= 0, np.diff(starts))
    return oracle.decoded(packed, np.where(takes_part[:, None], scales[rows], 0))
