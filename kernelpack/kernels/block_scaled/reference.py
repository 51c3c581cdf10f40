"""The oracle of block-scaled products: codes and scales of tokens bit for bit, sums in float64.

Of each group of 128 values of a token, in fp32, every operation rounded to nearest:

    scale   = min(max |x|, 1200) / 448
    inverse = 1 / scale, 0 where that is infinite
    code    = e4m3(x * inverse), at most 448

    out[t, n] = sum over groups of (sum of code[t, k] * w[n, k]) * scale[t, group] * scale of w

A number above 1200 counts as 1200, infinities too; a NaN makes NaN of its group. A kernel
adds products of a group in fp32, then the groups, and rounds once to bf16.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode, encode
from kernelpack.kernels.bounds import bound
from kernelpack.kernels.definition import Expected

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

GROUP = 128
LARGEST = np.float32(448)  # of e4m3
LARGEST_VALUE = np.float32(1200)
LEAST_STEP = 2.0**-133
"""Between the smallest numbers of bf16, where a rounding is no longer relative to the value."""


def quantise(x: NDArray[Any]) -> tuple[Doubles, Floats]:
    """Codes, as the numbers that they are, and scales [.., groups] of x [.., k]."""
    groups = x.astype(np.float32).reshape(*x.shape[:-1], -1, GROUP)
    with np.errstate(all="ignore"):  # infinities and NaN go where the formula takes them
        scales = np.minimum(np.abs(groups).max(-1), LARGEST_VALUE) / LARGEST
        inverse = np.float32(1) / scales
        inverse[np.isinf(inverse)] = 0
        codes = encode(DType.E4M3, groups * inverse[..., None], satfinite=True)
    return decode(DType.E4M3, codes).astype(np.float64).reshape(x.shape), scales


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of heads [h, n, k] as numbers, and their scales [h, n / 128, k / 128]."""

    values: Doubles
    scales: Floats

    @classmethod
    def of(cls, codes: NDArray[Any], scales: Floats) -> "Weights":
        """From e4m3 and from scales in any shape of as many elements."""
        heads, n, k = codes.shape
        values = decode(DType.E4M3, codes.view(np.uint8)).astype(np.float64)
        return cls(values=values, scales=scales.reshape(heads, n // GROUP, k // GROUP))


def product(x: NDArray[Any], weights: Weights) -> Expected:
    """Outputs [t, h, n] of x [t, h, k], and how far a kernel may be from them."""
    codes, scales = quantise(x)
    value = _sums(codes, scales, weights.values, weights.scales)
    magnitude = _sums(np.abs(codes), scales, np.abs(weights.values), np.abs(weights.scales))
    return Expected(value=value, bound=bound(value, magnitude, DType.BF16) + LEAST_STEP)


def _sums(codes: Doubles, scales: Floats, weights: Doubles, of_weights: Floats) -> Doubles:
    t, h, k = codes.shape
    n = weights.shape[1]
    a = codes.reshape(t, h, k // GROUP, GROUP) * scales.astype(np.float64)[..., None]
    w = weights.reshape(h, n // GROUP, GROUP, k // GROUP, GROUP)
    w = w * of_weights.astype(np.float64)[:, :, None, :, None]
    w = w.reshape(h, n, k // GROUP, GROUP)
    return np.asarray(np.einsum("thgk,hngk->thn", a, w, optimize=True))
