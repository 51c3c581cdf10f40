"""Inputs of block-scaled products: values that show roundings, weights of any size."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.kernels.block_scaled.reference import GROUP
from kernelpack.kernels.definition import Arrays

Random = np.random.Generator
Floats = NDArray[np.float32]


def normal(random: Random, shape: tuple[int, ...]) -> Floats:
    """Values as models have them."""
    return random.standard_normal(shape, np.float32)


def edges(random: Random, shape: tuple[int, ...]) -> Floats:
    """Groups of zeros, of numbers too small for an inverse, above 1200, and infinite; -0."""
    made = random.standard_normal(shape, np.float32)
    whole = shape[-1] // GROUP * GROUP
    groups = made[..., :whole].reshape(-1, GROUP)
    groups[0::7] = 0
    groups[1::7] *= np.float32(2.0**-126)  # some are below 448 * 2^-128
    groups[2::7] *= np.float32(2.0**-120)
    groups[3::7] *= np.float32(700)
    groups[4::7, 5] = np.inf
    groups[5::7, ::9] = -0.0
    groups[6::7] = np.clip(groups[6::7], -0.5, 0.5)
    groups[6::7, 3] = 448 / 256  # a scale of a power of two: ties of e4m3
    made[..., :whole] = groups.reshape(*shape[:-1], whole)
    return made


VALUES: dict[str, Callable[[Random, tuple[int, ...]], Floats]] = {"normal": normal, "edges": edges}


def laid_out(values: Floats, gaps: tuple[int, ...]) -> NDArray[np.generic]:
    """Values [t, h, k] or [t, k] in flat memory of bf16, NaN between them.

    gaps: elements after each index of the first sides: after a token, after a head.
    """
    whole = values.astype(DType.BF16.numpy)
    if not whole.size:
        return np.zeros(0, whole.dtype)
    for axis, gap in reversed(list(enumerate(gaps))):
        flat = whole.reshape(*whole.shape[: axis + 1], -1)
        behind = np.full((*flat.shape[:-1], gap), np.nan, flat.dtype)
        whole = np.concatenate([flat, behind], -1)
    return np.ascontiguousarray(whole.reshape(-1)[: whole.size - sum(gaps)])


def weights(random: Random, name: str, shape: tuple[int, int, int]) -> Arrays:
    """Weights [h, n, k] of every finite e4m3, and scales that are not round numbers."""
    h, n, k = shape
    codes = random.integers(0, 256, shape).astype(np.uint8)
    codes[(codes & 0x7F) == 0x7F] = 0x3C
    small = random.random(shape) < 0.7  # most of a size
    codes[small] = (codes[small] & 0x87) | 0x30
    scales = random.uniform(2.0**-9, 2.0**-7, (h, n * k // 128**2)).astype(np.float32)
    return {name: codes.view(DType.E4M3.numpy), f"{name}_scale": scales}
