"""Values of new rows: RMSNorm and rotation, the kernel's own operations in fp32, so bit for bit.

    rstd = 1 / sqrt(mean x^2 + epsilon)          mean: squares added as the lanes of a warp add them
    y    = bf16(G(x * rstd) * gamma)             G: rounded to gamma's type
    rope = bf16(a c - b s), bf16(a s + b c)      of each pair (a, b), at its angle

Every operation is rounded to nearest. A row whose squares overflow becomes zeros.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import LATENT

Floats = NDArray[np.float32]
Bf16 = NDArray[Any]

LANE = 16  # values of a lane
NAN = 0x7FFF  # of a bf16 result


def to_bf16(values: Floats) -> Bf16:
    """The nearest; a NaN as the hardware writes it."""
    raw = values.astype(DType.BF16.numpy).view(np.uint16)
    found = np.where(np.isnan(values), np.uint16(NAN), raw)
    return np.asarray(found).astype(np.uint16).view(DType.BF16.numpy)


def sums_of_squares(x: Floats) -> Floats:
    """Of rows [t, 512]: a lane's one after another, then lanes by twos, fours, up to all."""
    squares = (x * x).reshape(len(x), LATENT // LANE, LANE)
    lanes = np.zeros(squares.shape[:2], np.float32)
    for i in range(LANE):
        lanes = lanes + squares[:, :, i]
    while lanes.shape[1] > 1:
        lanes = lanes[:, 0::2] + lanes[:, 1::2]
    return lanes[:, 0]


def normalise(x: Bf16, gamma: NDArray[Any], epsilon: float) -> Bf16:
    """RMSNorm of rows [t, 512]; gamma [512] of bf16 or fp32."""
    wide = x.astype(np.float32)
    with np.errstate(all="ignore"):  # infinities and NaN go where the formula takes them
        mean = sums_of_squares(wide) * np.float32(1 / LATENT)
        rstd = np.float32(1) / np.sqrt(mean + np.float32(epsilon))
        normed = wide * rstd[:, None]
        if gamma.dtype != np.float32:
            normed = to_bf16(normed).astype(np.float32)
        return to_bf16(normed * gamma.astype(np.float32))


def rotate(x: Bf16, freqs: Floats) -> Bf16:
    """Rope values [.., 64] at angles [.., 64], cosine and sine of each pair."""
    pairs = x.astype(np.float32).reshape(*x.shape[:-1], -1, 2)
    angles = freqs.reshape(*freqs.shape[:-1], -1, 2)
    a, b, c, s = pairs[..., 0], pairs[..., 1], angles[..., 0], angles[..., 1]
    with np.errstate(all="ignore"):
        rotated = np.stack([a * c - b * s, a * s + b * c], -1)
    return to_bf16(rotated.reshape(x.shape))
