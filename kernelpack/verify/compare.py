"""An output beside the oracle's: how many elements are wrong, the first, the worst, and a picture.

`Expected` decides what is right; this counts and shows the errors.
"""

from dataclasses import dataclass, field
from math import inf, isnan, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError
from kernelpack.kernels.definition import Expected

Doubles = NDArray[np.float64]

MAP_SIDE = 48
"""Pixels of an error map along each side of a plane, at most."""
MAP_PLANES = 8
WITHIN, NOT_A_NUMBER = 200, 255
"""Levels of a map: 0 … WITHIN is an error of 0 … 1 bounds, above it is wrong, the last is NaN."""

EXACT = 1e100
"""More bounds than this off: the bound is zero, and `Expected.ratio` divides by almost zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One element: where, what was found and expected, and its error in bounds."""

    index: tuple[int, ...]
    found: float
    expected: float
    ratio: float

    def __str__(self) -> str:
        at = ", ".join(map(str, self.index))
        if isnan(self.expected):
            return f"[{at}] = {self.found:g}, expected NaN: to be left as it was, unwritten"
        if EXACT < self.ratio < inf:
            return f"[{at}] = {self.found:g}, expected exactly {self.expected:g}"
        return f"[{at}] = {self.found:g}, expected {self.expected:g} ({self.ratio:.3g} bounds off)"


NOTHING = Element(index=(), found=0.0, expected=0.0, ratio=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMap:
    """|error| / bound of each plane, as levels of 0 … 255; a pixel is the worst of what it covers.

    Attributes:
        shape: planes, rows and columns of pixels.
        levels: a byte a pixel, row-major.

    """

    shape: tuple[int, int, int]
    levels: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An output beside the oracle's.

    Attributes:
        name: the output.
        elements: how many it has.
        wrong: how many of them are beyond their bound.
        first: the first wrong element in row-major order, if one is wrong.
        worst: the element of the largest error in bounds; NOTHING of an empty output.
        drift: the cosine difference of the whole over its limit; at most 1 is right.
        picture: where the errors are.

    """

    name: str
    elements: int
    wrong: int
    first: Element | None
    worst: Element
    drift: float = 0.0
    picture: ErrorMap = field(repr=False)

    @property
    def is_right(self) -> bool:
        """Whether every element is within its bound, and the whole within its own."""
        return self.wrong == 0 and self.drift <= 1

    def __str__(self) -> str:
        if self.is_right:
            return f"{self.name}: right, {self.worst.ratio:.2f} of the bound at worst"
        if self.first is None:
            return f"{self.name}: off by {self.drift:.3g} cosine bounds as a whole"
        return f"{self.name}: {self.wrong} of {self.elements} wrong, first {self.first}"


def compare(name: str, output: NDArray[Any], expected: Expected) -> Comparison:
    """Check an output of any number type against the oracle's.

    Raises:
        ProblemError: the two have different shapes, which numpy would broadcast.

    """
    if output.shape != expected.value.shape:
        rule = f"the oracle has the shape {expected.value.shape}, the output {output.shape}"
        raise ProblemError(rule, where=f"`{name}`", hint="mend the kernel's `expected`")
    found, ratio = output.astype(np.float64), expected.ratio(output)
    wrong = ratio > 1
    worst = int(ratio.argmax()) if ratio.size else None
    first = int(wrong.argmax()) if wrong.any() else None
    return Comparison(
        name=name,
        elements=found.size,
        wrong=int(wrong.sum()),
        first=None if first is None else _element(first, found, expected, ratio),
        worst=NOTHING if worst is None else _element(worst, found, expected, ratio),
        drift=expected.drift(output),
        picture=picture(ratio),
    )


def _element(flat: int, found: Doubles, expected: Expected, ratio: Doubles) -> Element:
    index = np.unravel_index(flat, found.shape)
    return Element(
        index=tuple(int(i) for i in index),
        found=float(found[index]),
        expected=float(expected.value[index]),
        ratio=float(ratio[index]),
    )


def picture(ratio: Doubles) -> ErrorMap:
    """Errors in bounds as a map of each plane; the last two dimensions are a plane's."""
    sides = (1, 1, *ratio.shape)[-2:]
    planes = ratio.reshape(prod(ratio.shape[:-2]), *sides)[:MAP_PLANES]
    small = _shrink(_shrink(planes, 1), 2)
    levels = np.minimum(np.rint(small * WITHIN), WITHIN)
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = WITHIN + 1 + np.minimum(np.log2(small) * 4, NOT_A_NUMBER - WITHIN - 2)
    levels = np.where(small > 1, beyond, levels)
    levels = np.where(np.isinf(small), NOT_A_NUMBER, levels).astype(np.uint8)
    shape = (levels.shape[0], levels.shape[1], levels.shape[2])
    return ErrorMap(shape=shape, levels=levels.tobytes())


def _shrink(planes: Doubles, axis: int) -> Doubles:
    """At most MAP_SIDE along an axis: the worst of each run of elements."""
    length = planes.shape[axis]
    starts = np.unique(np.linspace(0, length, min(length, MAP_SIDE), endpoint=False).astype(int))
    return np.asarray(np.maximum.reduceat(planes, starts, axis=axis))
