"""A launch of a kernel that a compiler emitted: its arguments, its grid, what must come out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Map:
    """A tensor map of an array in C order. Its box and swizzle are the compiler's."""

    array: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Places:
    """Device memory that holds the addresses of arrays."""

    arrays: tuple[NDArray[Any], ...]


Argument = NDArray[Any] | np.generic | Map | Places
"""An array is passed by its address, a number of numpy as it is."""


@dataclass(frozen=True, slots=True)
class Result:
    """An array that the kernel fills, in float64, and how far off it may be."""

    array: NDArray[Any]
    want: Numbers
    bound: Numbers

    def is_right(self) -> bool:
        """Whether every element is within its bound; NaN is not."""
        return bool((np.abs(self.array.astype(np.float64) - self.want) <= self.bound).all())


@dataclass(frozen=True, slots=True)
class Case:
    """One launch."""

    arguments: tuple[Argument, ...]
    grid: tuple[int, int, int]
    results: tuple[Result, ...]


def product(out: NDArray[Any], a: Numbers, b: Numbers) -> Result:
    """`out` is A B^T: the bound is that of a sum in fp32 and of rounding to out's type."""
    want, size = a @ b.T, np.abs(a) @ np.abs(b).T
    return Result(out, want, 1e-6 * size + np.finfo(out.dtype).eps * np.abs(want))
