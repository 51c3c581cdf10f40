"""Doubles that are multiplied and added with one rounding, and products of matrices of them.

A tensor core's is as precise as `fma.rn.f64`, one after the other along K (PTX ISA 9.7.14.5.14).
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def multiply_add(a: Any, b: Any, c: Any) -> Doubles:  # noqa: ANN401
    """Fused a * b + c of lists of doubles, nearest even, by rational arithmetic."""
    triples = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    return np.array([_one(x, y, z) for x, y, z in triples], np.float64)


def _one(x: float, y: float, z: float) -> float:
    with np.errstate(all="ignore"):
        plain = float(np.float64(x) * np.float64(y) + np.float64(z))
    if not np.isfinite(plain) and not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
        return plain
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(exact) if exact else plain
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def product(a: Doubles, b: Doubles, c: Doubles, *, exact: bool) -> Doubles:
    """A B^T + C of (m, k), (n, k) and (m, n): rounded at each step, or as numpy sums."""
    if not exact:
        with np.errstate(all="ignore"):
            plain: Doubles = a @ b.T + c
        return plain
    rows, columns = len(a), len(b)
    total = c.reshape(-1)
    for left, right in zip(a.T, b.T, strict=True):
        total = multiply_add(np.repeat(left, columns), np.tile(right, rows), total)
    return total.reshape(rows, columns)
