"""Values of rows to be quantised, and their tensor scales: each kind shows a rule.

A kind makes x [t, k] and tensor scales [e]. Powers of two as tensor scales make exact what should
be exact; others make every rounding count.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode

Floats = NDArray[np.float32]
Shape = tuple[int, int]
Made = tuple[NDArray[np.generic], Floats]

TIES = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], np.float32)  # halfway between two codes
TINY = 2.0**-10 * 6  # with tensor scale 1, the largest element whose scale is 0


def normal(random: np.random.Generator, shape: Shape, e: int, dtype: DType) -> Made:
    """Rows as models have them; tensor scales that are not round numbers."""
    x = random.standard_normal(shape, np.float32).astype(dtype.numpy)
    return x, random.uniform(20, 600, e).astype(np.float32)


def bits(random: np.random.Generator, shape: Shape, e: int, dtype: DType) -> Made:
    """Any bits at all: numbers of every size, infinities and NaN; most blocks without NaN."""
    x = random.integers(0, 1 << 16, shape).astype(np.uint16).view(dtype.numpy)
    calm = random.standard_normal(shape, np.float32).astype(dtype.numpy)
    wild = random.random((shape[0], shape[1] // 16, 1)) < 0.5
    finite = np.where(np.isfinite(x.astype(np.float32)), x, calm)
    blocks = np.where(wild, x.reshape(*wild.shape[:2], 16), finite.reshape(*wild.shape[:2], 16))
    return blocks.reshape(shape), (2 * random.random(e) + 0.1).astype(np.float32)


def ties(random: np.random.Generator, shape: Shape, e: int, dtype: DType) -> Made:
    """Elements halfway between two codes and right beside, under every scale there is."""
    scale = decode(DType.E4M3, random.integers(8, 0x7F, (shape[0], shape[1] // 16, 1)))
    code = random.choice(np.concatenate([TIES, -TIES]), (*scale.shape[:2], 16))
    code[..., 0] = 6
    x = (code * scale).astype(dtype.numpy).view(np.uint16)
    beside = x + random.integers(-1, 2, x.shape) * (np.arange(16) > 0)
    return beside.astype(np.uint16).view(dtype.numpy).reshape(shape), np.ones(e, np.float32)


def scales(random: np.random.Generator, shape: Shape, e: int, dtype: DType) -> Made:
    """Largest elements whose scales are ties of e4m3, too large for it, or round to zero."""
    code = random.integers(0, 0x7F, (shape[0], shape[1] // 16, 1))
    halfway = (decode(DType.E4M3, code) + decode(DType.E4M3, np.minimum(code + 1, 0x7E))) / 2
    largest = np.where(random.random(code.shape) < 0.1, 5000, 6 * halfway)
    x = largest * random.choice([1, 0.5, -0.25, 0], (*code.shape[:2], 16))
    return x.astype(dtype.numpy).reshape(shape), np.ones(e, np.float32)


def tiny(random: np.random.Generator, shape: Shape, e: int, dtype: DType) -> Made:
    """Blocks of zeros of both signs, and blocks so small that their scale is zero, or just not."""
    largest = TINY * random.choice([0, 0.5, 1, 1.125, 2], (shape[0], shape[1] // 16, 1))
    x = largest * random.choice([1, -1, 0.5, -0.0], (*largest.shape[:2], 16))
    return x.astype(dtype.numpy).reshape(shape), np.ones(e, np.float32)


def extreme(random: np.random.Generator, shape: Shape, e: int, dtype: DType) -> Made:
    """Tensor scales whose reciprocals or products leave fp32's normal numbers."""
    x, _ = bits(random, shape, e, dtype)
    powers = np.array([2.0**-149, 2.0**-130, 2.0**-126, 2.0**100, 2.0**127, 3e38], np.float32)
    return x, np.resize(random.permutation(powers), e)


VALUES: dict[str, Callable[[np.random.Generator, Shape, int, DType], Made]] = {
    kind.__name__: kind for kind in (normal, bits, ties, scales, tiny, extreme)
}
