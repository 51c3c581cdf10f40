"""Units in the last place of each type."""

import numpy as np
import pytest

from kernelpack.formats.dtype import DType
from kernelpack.formats.ulp import ulp


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1.0, DType.FP32, 2.0**-23),
        (1.99, DType.BF16, 2.0**-7),
        (-2.0, DType.FP16, 2.0**-9),
        (0.0, DType.FP16, 2.0**-24),
        (448.0, DType.E4M3, 32.0),
        (3.0, DType.E2M1, 1.0),
        (1.0, DType.TF32, 2.0**-10),
        (7.0, DType.I32, 1.0),
    ],
)
def test_ulp(value, dtype, expected):
    """The step from one number of a type to the next."""
    assert expected == ulp(value, dtype)


@pytest.mark.parametrize("dtype", [DType.FP16, DType.BF16, DType.FP32, DType.E4M3, DType.E5M2])
def test_ulp_is_the_step_of_the_type(dtype):
    """Where numpy knows the next number of a type, it is an ulp away."""
    values = np.array([0.02, 0.3, 1, 1.5, 3, 100], np.float64).astype(dtype.numpy)
    bits = values.view(f"u{values.itemsize}")
    after = (bits + 1).astype(bits.dtype).view(dtype.numpy)
    steps = after.astype(np.float64) - values.astype(np.float64)
    assert (steps == ulp(values.astype(np.float64), dtype)).all()
