"""A kernel's definition, in the form that `run`, `verify` and the tests on a GPU share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.spec.arch import Arch

Arrays = dict[str, NDArray[Any]]
"""A kernel's arrays by the name of its manifest's argument."""

UNTOUCHED = 0xFF
"""Each byte of an output before a kernel runs: a float's NaN, so that what is left out is found."""


class Case(Protocol):
    """One problem to verify: named, and made of numbers alone, so that it can be made anywhere."""

    @property
    def name(self) -> str:
        """Its name; unique among a kernel's cases."""

    @property
    def sizes(self) -> Mapping[str, float]:
        """The problem as the manifest names it: sizes, which are integers, and numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """An output as the oracle has it, float64.

    Attributes:
        value: each element; NaN where the kernel is to leave what was there.
        bound: the most each element may differ from it; an infinity must be met exactly.
        cosine: the most that the whole may differ in direction and length, `1 - 2ab / (aa + bb)`
            of output a and value b; what many small errors of one sign exceed.
        elsewhere: what else is expected on a family of targets, by its name, where its tensor
            cores add up otherwise.
        dtype: the type whose ulps the bound is made of, which is the output's; None of no such.

    """

    value: NDArray[np.float64]
    bound: NDArray[np.float64]
    cosine: float = np.inf
    elsewhere: Mapping[str, "Expected"] = field(default_factory=dict)
    dtype: DType | None = None

    def on(self, arch: Arch) -> "Expected":
        """The expected outputs of a target's kernels."""
        return self.elsewhere.get(arch.family, self)

    def ratio(self, output: NDArray[Any]) -> NDArray[np.float64]:
        """The error of each element of an output over its bound; at most 1 is right.

        Infinite for NaN, and where an element was written that was to be left: an output's bytes
        are UNTOUCHED before a kernel runs. An exact zero may have a bound of zero.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            found = output.astype(np.float64)
            error = np.abs(found - self.value)
            ratio = error / np.maximum(self.bound, _TINY)
        ratio[np.isnan(ratio)] = np.inf
        ratio[np.isinf(self.value) & (found == self.value)] = 0
        left = np.isnan(self.value)
        raw = np.ascontiguousarray(output).view(np.uint8)
        elements = raw.reshape(*output.shape, output.itemsize)
        ratio[left & (elements == UNTOUCHED).all(-1)] = 0
        return ratio

    def drift(self, output: NDArray[Any]) -> float:
        """The cosine difference of an output over its limit; at most 1 is right.

        Elements that are to be left, and infinities, are `ratio`'s alone.
        """
        if np.isinf(self.cosine):
            return 0.0
        counted = np.isfinite(self.value)
        value, found = self.value[counted], output.astype(np.float64)[counted]
        with np.errstate(invalid="ignore", over="ignore"):
            whole = float(np.sum(np.square(value) + np.square(found)))
            apart = float(np.sum(np.square(found - value)))  # whole - 2ab, without cancellation
        difference = apart / whole if whole else 0.0
        return float("inf") if np.isnan(difference) else difference / self.cosine


_TINY = 2.0**-800  # an error where the bound is 0 is a huge ratio, no error is 0


def beginning(*words: str) -> Callable[[str], str]:
    """The group of a kind: the first of some words that it begins with; of no such, itself."""

    def group(kind: str) -> str:
        return next((word for word in words if kind.startswith(word)), kind)

    return group


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A kernel's meaning.

    Attributes:
        stem: the kernel's name.
        abis: the kernel-ABI numbers that this version can call.
        cases: every problem to verify.
        small: those of `cases` that an emulator runs in seconds.
        telling: the few of `small` that every variant is verified on, the most telling first.
        case: a problem from the sizes a person types (missing ones have defaults), by name.
        emulated: sizes for `case` that an emulator runs in a second, where a person gives none.
        kind: what a case is about, apart from the format of its arrays; the end of its name.
        group: of a kind, the name of those that differ in numbers alone, not in who waits for whom.
        inputs: the input arrays of a case; the same for the same case.
        steering: those of `inputs` that say where data lies, or others of their kind, made without
            the rest; None: `inputs` has to make all.
        expected: the oracle: the output arrays of a case, from its inputs.
        origin: the file that it was made of, for messages; empty of one that is Python's own.
        version: a digest of what it computes by, beside kernelpack's own code.

    """

    stem: str
    abis: range
    cases: Callable[[], tuple[Any, ...]]
    small: Callable[[], tuple[Any, ...]]
    telling: Callable[[], tuple[Any, ...]]
    case: Callable[[Mapping[str, str]], Any]
    emulated: Mapping[str, str]
    kind: Callable[[Any], str] = attrgetter("name")
    group: Callable[[str], str] = str
    inputs: Callable[[Any], Arrays]
    steering: Callable[[Any], Arrays] | None = None
    expected: Callable[[Any, Arrays], dict[str, Expected]]
    origin: str = ""
    version: str = ""
