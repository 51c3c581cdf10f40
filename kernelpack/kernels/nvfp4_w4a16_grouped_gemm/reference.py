"""The oracle of the grouped GEMM of bf16 tokens and NVFP4 weights in float64."""

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.kernels.nvfp4 import oracle


def expected(arrays: Arrays, out_dtype: DType) -> Expected:
    """`c` [t, n] and the bound of each element."""
    return oracle.expected(arrays, arrays["a"].astype(np.float64), out_dtype)
