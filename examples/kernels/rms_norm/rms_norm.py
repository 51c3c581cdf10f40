"""What rms_norm computes, and the problems that it is verified on."""

import numpy as np

from kernelpack.oracle import every, normal, within

WIDTHS, DTYPES = (1024, 4096, 7168), ("bf16", "fp16")
CASES = every(rows=(3, 1), width=WIDTHS, eps=1e-6, dtype=DTYPES)
CASES += every(rows=2, width=1024, eps=0.5, dtype=DTYPES)
LARGE = every(rows=4096, width=WIDTHS, eps=1e-6, dtype=DTYPES)


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
    return {"y": within(x / np.sqrt(mean + sizes.eps) * w, sizes.dtype, ulps=1)}
