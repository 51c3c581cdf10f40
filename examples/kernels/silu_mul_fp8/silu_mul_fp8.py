"""What silu_mul_fp8 computes, and the problems that it is verified on."""

import numpy as np

from kernelpack.oracle import every, normal, within

CASES = every(rows=(3, 1), width=(264, 8, 1032, 4104), dtype=("bf16", "fp16"))
LARGE = every(rows=4096, width=(2048, 14336), dtype=("bf16", "fp16"))
FP32 = 2.0**-18  # a few operations in fp32, relative to their result


def inputs(sizes, random):
    """Gates and factors, side by side; the last row is 0."""
    x = normal(random, (sizes.rows, 2 * sizes.width), sizes.dtype)
    x[-1] = 0 if sizes.rows > 1 else x[-1]
    return {"x": x}


def expected(_, arrays):
    """Each row by its scale, which makes the largest of it 448."""
    gate, up = np.split(arrays["x"].astype(np.float64), 2, axis=-1)
    values = gate / (1 + np.exp(-gate)) * up
    most = np.abs(values).max(axis=-1)
    scale = np.where(most == 0, 1, most / 448)
    exact = values / scale[:, None]
    return {
        "workspace": within(values, "fp32", ulps=1, least=np.abs(values) * FP32),
        "scale": within(scale, "fp32", ulps=1, least=scale * FP32),
        "q": within(exact, "e4m3", ulps=0.5, least=np.abs(exact) * FP32),
    }
