"""How far apart neighbouring numbers of a type are."""

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelpack.formats.dtype import DType


def ulp(value: ArrayLike, dtype: DType) -> NDArray[np.float64]:
    """The distance between the numbers of a type around each value; 1 of integers.

    A value beyond the largest of a type is taken as if its exponents went on.
    """
    values = np.abs(np.asarray(value, np.float64))
    if dtype.is_integer:
        return np.ones_like(values)
    facts = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    finite = np.where(np.isfinite(values), values, 0)
    _, exponents = np.frexp(np.maximum(finite, float(facts.smallest_normal)))
    mantissa = 10 if dtype is DType.TF32 else facts.nmant
    return np.asarray(np.ldexp(1.0, exponents - 1 - mantissa), np.float64)
