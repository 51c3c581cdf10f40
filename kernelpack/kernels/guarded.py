"""Calls of an oracle's functions: their errors with their lines, their results checked.

Whether arrays and outputs are those of a kernel is `held`'s question.
"""

import signal
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelpack.errors import KernelpackError, OracleError
from kernelpack.kernels.definition import Arrays, Expected


def is_asked(error: BaseException) -> bool:
    """Whether somebody asked the program to end, and it is no exception of the code that ran."""
    if isinstance(error, KeyboardInterrupt):
        return signal.getsignal(signal.SIGINT) is not signal.SIG_IGN  # which it is in workers
    return isinstance(error, SystemExit) and error.code == 128 + signal.SIGTERM


@dataclass(frozen=True, slots=True)
class Guarded:
    """Calls functions of one file."""

    origin: str

    def arrays(self, name: str, function: Callable[..., object], *given: object) -> Arrays:
        """A function's result, as arrays by name."""
        found = self._mapping(name, self.call(function, *given), "arrays")
        for key, value in found.items():
            if not isinstance(value, np.ndarray):
                what = f"`{name}` gives a {type(value).__name__} as `{key}`, not a numpy array"
                raise OracleError(what, where=self.origin)
        return {key: np.ascontiguousarray(value) for key, value in found.items()}

    def expected(
        self, name: str, function: Callable[..., object], sizes: object, arrays: Arrays
    ) -> dict[str, Expected]:
        """A function's result, as expected outputs by name; inputs are not written."""
        seen = {key: array.view() for key, array in arrays.items()}
        for array in seen.values():
            array.flags.writeable = False
        found = self._mapping(name, self.call(function, sizes, seen), "what is expected")
        for key, value in found.items():
            if not isinstance(value, Expected):
                what = f"`{name}` gives a {type(value).__name__} as `{key}`, not an Expected"
                hint = "such as within(value, dtype, ulps=1)"
                raise OracleError(what, where=self.origin, hint=hint)
        return dict(found)

    def call(self, function: Callable[..., object], *given: object) -> object:
        """Call a function of the file.

        Raises:
            OracleError: it raises; at the line of the file where it does.

        """
        try:
            return function(*given)
        except KernelpackError as error:
            raise OracleError(error.what, where=self.line(error), hint=error.hint) from error
        except BaseException as error:
            if is_asked(error):
                raise
            what = f"{type(error).__name__}: {error}"
            raise OracleError(what, where=self.line(error)) from error

    def line(self, error: BaseException) -> str:
        """The innermost line of the file that an error passed."""
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == self.origin]
        return f"{self.origin}:{lines[-1]}" if lines else self.origin

    def _mapping(self, name: str, found: object, meant: str) -> Mapping[str, Any]:
        if isinstance(found, Mapping):
            return found
        what = f"`{name}` gives a {type(found).__name__}, not {meant} by name"
        raise OracleError(what, where=self.origin)
