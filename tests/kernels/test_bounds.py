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


def test_bound_of_a_subnormal():
    """A number below fp16's normal ones is rounded to a step of theirs, which does not shrink."""
    assert bound(np.array(2.0**-20), np.array(0.0), DType.FP16) == 2.0**-24
