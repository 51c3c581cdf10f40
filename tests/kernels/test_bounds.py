"""A kernel's error: one rounding of the value, and sums in fp32."""

import numpy as np
import pytest

from kernelpack.formats.dtype import DType
from kernelpack.kernels.bounds import bound


@pytest.mark.parametrize(
    ("out_dtype", "expected"),
    [
        (DType.BF16, 3 * 2.0**-8 + 5 * 2.0**-18),
        (DType.FP16, 3 * 2.0**-10 + 5 * 2.0**-18),
        (DType.FP32, 3 * 2.0**-22 + 5 * 2.0**-18),
    ],
)
def test_bound(out_dtype, expected):
    """The value is rounded to the output's type; magnitudes of products to fp32."""
    assert expected == bound(np.array(-3.0), np.array(5.0), out_dtype)
