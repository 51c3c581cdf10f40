"""How far a kernel that sums products in fp32 and rounds once may be from the exact sums."""

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType

Doubles = NDArray[np.float64]

ROUNDING = {DType.BF16: 2.0**-8, DType.FP16: 2.0**-10, DType.FP32: 2.0**-22}
"""One rounding to the output's type, relative to the value."""

STEP = {DType.BF16: 0.0, DType.FP16: 2.0**-24, DType.FP32: 0.0}
"""The least step between numbers of the output's type, where sums may be as small as that."""

ACCUMULATION = 2.0**-18
"""Sums in fp32, in any order, relative to the sum of the products' magnitudes."""


def bound(value: Doubles, magnitude: Doubles, out_dtype: DType) -> Doubles:
    """The largest error of each sum; `magnitude` is the sum of its products' magnitudes."""
    rounding = np.maximum(np.abs(value) * ROUNDING[out_dtype], STEP[out_dtype])
    return rounding + magnitude * ACCUMULATION
