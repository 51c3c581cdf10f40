"""What silu computes, and the problems that it is verified on."""

import numpy as np

from kernelpack.oracle import every, normal, within

# Small problems, for the emulator and for a GPU. Those of LARGE are for a GPU alone.
CASES = every(n=(1, 255, 1000, 4099), dtype=("bf16", "fp16", "fp32"))
LARGE = every(n=1 << 24, dtype=("bf16", "fp16", "fp32"))


def inputs(sizes, random):
    """The arrays that the kernel reads, by the names of the manifest."""
    return {"x": normal(random, sizes.n, sizes.dtype)}


def expected(sizes, arrays):
    """The arrays that the kernel writes, in float64, and how far it may be from them.

    It rounds once, to the type of y, which costs half an ulp; before that it computes in fp32, with
    an exponential of few ulps.
    """
    x = arrays["x"].astype(np.float64)
    y = x / (1 + np.exp(-x))
    return {"y": within(y, sizes.dtype, ulps=0.5, least=np.abs(y) * 2.0**-20)}
