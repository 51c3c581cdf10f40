"""The tools of oracles: random inputs by type, and outputs with a bound in ulps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelpack.formats.dtype import DType
from kernelpack.formats.ulp import ulp
from kernelpack.kernels.definition import Expected

Shape = int | Sequence[int]


def numpy_type(dtype: str) -> np.dtype[Any]:
    """The numpy type of a manifest's word: `bf16`, `e4m3` or `u32`."""
    return DType.parse(dtype, where="dtype").numpy


def normal(random: np.random.Generator, shape: Shape, dtype: str) -> NDArray[Any]:
    """Numbers of a standard normal distribution, rounded to a type."""
    return random.standard_normal(shape, np.float32).astype(numpy_type(dtype))


def within(value: ArrayLike, dtype: str, *, ulps: float = 1.0, least: ArrayLike = 0.0) -> Expected:
    """An output that may be so many ulps of its type, and `least` beside, from each value.

    Half an ulp is what rounding to the type costs; a kernel that computes in fp32 and rounds once
    is within 1. Give as `least` what its sums may lose, where they may cancel.
    """
    exact = np.asarray(value, np.float64)
    kind = DType.parse(dtype, where="dtype")
    bound = ulps * ulp(exact, kind) + np.asarray(least, np.float64)
    return Expected(value=exact, bound=bound, dtype=kind)


def exactly(value: ArrayLike) -> Expected:
    """An output that is to be these numbers, all of them."""
    exact = np.asarray(value, np.float64)
    return Expected(value=exact, bound=np.zeros_like(exact))
