"""How far scores of e4m3 may be off on Hopper, whose tensor cores keep 13 bits of such sums.

An MMA takes STEP columns. It aligns their products, and the sum it adds to, to the largest exponent
among them, cuts each BITS below that, adds, and cuts the sum to BITS of mantissa. (Khattak and
Mikaitis, arXiv 2512.07004.) Kernels let CHAIN MMAs add to one sum and add up these in fp32, so an
error is that of each chain's MMAs:

    cut terms * 2^(E - BITS)  +  2^-BITS |sum so far|        E: of the largest product, or the sum

A product of two e4m3 numbers has six bits after its first, so it is not cut unless its exponent is
more than BITS - 6 below E: unless its factors are, together, so far below the largest of theirs.
All of that is of the two vectors; nothing here is chosen.
"""

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]

STEP, CHAIN, BITS = 32, 2, 13
WHOLE = BITS - 6
"""How far below the largest exponent a product is still whole."""
_SMALLEST, _OF_ZERO = -6, -10_000


class Steps:
    """One side of the products, [vectors, columns], MMA by MMA: exponents of its numbers.

    Attributes:
        numbers: the vectors.
        largest: exponents of the largest of each step [vectors, steps].

    """

    def __init__(self, numbers: Doubles) -> None:
        self.numbers = numbers
        exponents = np.maximum(np.frexp(numbers)[1] - 1, _SMALLEST)
        exponents = np.where(numbers == 0, _OF_ZERO, exponents)
        self._exponents = exponents.reshape(len(numbers), -1, STEP)
        self.largest = np.maximum(self._exponents.max(2), 2 * _SMALLEST)

    def below(self, step: int, by: Counts) -> Counts:
        """How many numbers of a step are more than 2^by below its largest: [vectors, len(by)]."""
        exponents = self._exponents[:, step]
        exponents = np.where(exponents > _OF_ZERO, exponents, -_OF_ZERO)  # zeros are never cut
        limits = self.largest[:, step, None] - by
        return np.asarray((exponents[:, None, :] < limits[..., None]).sum(2))


def cut(q: Doubles, keys: Doubles) -> Doubles:
    """The most that q·k may be off, for q [h, columns] and keys [n, columns]: [h, n]."""
    heads, rows = Steps(q), Steps(keys)
    total = np.zeros((len(q), len(keys)))
    for first in range(0, q.shape[1] // STEP, CHAIN):
        so_far, error = np.zeros_like(total), np.zeros_like(total)
        for step in range(first, min(first + CHAIN, q.shape[1] // STEP)):
            columns = slice(step * STEP, (step + 1) * STEP)
            error = error + _of_terms(heads, rows, step, np.abs(so_far) + error)
            so_far = so_far + q[:, columns] @ keys[:, columns].T
            error = error + 2.0**-BITS * (np.abs(so_far) + error)
        total += error
    return total


def _of_terms(heads: Steps, rows: Steps, step: int, before: Doubles) -> Doubles:
    """The truncated part of products, and of the sum before them, [h, n]."""
    exponents = heads.largest[:, step, None] + rows.largest[:, step]
    above = np.frexp(before)[1] - 1 - exponents  # how far the sum is above the products
    above = np.where(before > 0, np.clip(above, 0, WHOLE + 1), 0)
    far = np.arange(WHOLE + 2)
    ours = (WHOLE - far) // 2
    terms = heads.below(step, ours)[np.arange(len(before))[:, None], above]
    terms = terms + rows.below(step, WHOLE - far - ours)[np.arange(before.shape[1]), above]
    unit = np.maximum(np.ldexp(1.0, exponents), before) * 2.0**-BITS
    return np.asarray((np.minimum(terms, STEP) + (before > 0)) * unit)
