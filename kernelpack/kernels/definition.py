"""What a kernel means, in the form that `run`, `verify` and the tests on a GPU share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
"""A kernel's arrays by the name of its manifest's argument."""


class Case(Protocol):
    """One problem to verify: named, and made of numbers alone, so that it can be made anywhere."""

    @property
    def name(self) -> str:
        """What people call it; unique among a kernel's cases."""

    @property
    def sizes(self) -> dict[str, int]:
        """The problem as the manifest names it, name → integer, without the device's sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """An output as the oracle has it, and the most each element may differ from it; float64."""

    value: NDArray[np.float64]
    bound: NDArray[np.float64]


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
        inputs: the input arrays of a case; the same for the same case.
        expected: the oracle: the output arrays of a case, from its inputs.

    """

    stem: str
    abis: range
    cases: Callable[[], tuple[Any, ...]]
    small: Callable[[], tuple[Any, ...]]
    telling: Callable[[], tuple[Any, ...]]
    case: Callable[[Mapping[str, str]], Any]
    emulated: Mapping[str, str]
    inputs: Callable[[Any], Arrays]
    expected: Callable[[Any, Arrays], dict[str, Expected]]
