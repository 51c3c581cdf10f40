"""What rms_norm computes, and the problems that it is verified on."""

import numpy as np

from kernelpack.oracle import every, normal, within

CASES = every(rows=(3, 1), width=(1024, 4096, 7168), dtype=("bf16", "fp16"))
LARGE = every(rows=4096, width=(1024, 4096, 7168), dtype=("bf16", "fp16"))


def inputs(sizes, random):
    """Rows and weights, of a few units each."""
    return {
        "x": normal(random, (sizes.rows, sizes.width), sizes.dtype),
        "w": normal(random, sizes.width, sizes.dtype),
    }


def expected(sizes, arrays):
    """The rows in float64; a kernel that rounds once, to the type of y, is within one ulp."""
    x, w = (arrays[name].astype(np.float64) for name in ("x", "w"))
    mean = np.mean(x * x, axis=-1, keepdims=True)
    return {"y": within(x / np.sqrt(mean + 1e-6) * w, sizes.dtype, ulps=1)}
