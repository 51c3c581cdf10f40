"""What step 4 computes: c = a x b^T."""

import numpy as np

from kernelpack.oracle import every, exactly, numpy_type

CASES = every(m=130, n=72, k=328)  # six blocks of k: twice around a ring of three stages
CASES += every(m=1, n=8, k=8)
LARGE = every(m=4096, n=4096, k=4096)


def inputs(sizes, random):
    """Small integers: their products, and sums of these in any order, are exact in fp32."""
    shapes = {"a": (sizes.m, sizes.k), "b": (sizes.n, sizes.k)}
    whole = {name: random.integers(-8, 9, shape) for name, shape in shapes.items()}
    return {name: each.astype(numpy_type("bf16")) for name, each in whole.items()}


def expected(sizes, arrays):
    """The product."""
    a, b = (arrays[name].astype(np.float64) for name in ("a", "b"))
    return {"c": exactly(a @ b.T)}
