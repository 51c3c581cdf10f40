"""The arguments of a call, sorted into arrays, sizes and numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.ops.arrays import Array, dtype_of
from kernelpack.ops.checks import integer
from kernelpack.ops.face import WORKSPACE, Face
from kernelpack.spec.expr import Word
from kernelpack.spec.nearest import nearest

OUT = "out"
"""The word for the output of a kernel that has one, whatever its name."""


class Given:
    """A caller's arguments, by the manifest's names.

    Attributes:
        arrays: of any framework.
        said: sizes as integers, numbers as they were put.

    Raises:
        ProblemError: a name is not one of the kernel's, or a value is wrong.

    """

    def __init__(self, face: Face, given: Mapping[str, Any]) -> None:
        self.face = face
        self.arrays: dict[str, Array] = {}
        self.said: dict[str, float] = {}
        for word, value in given.items():
            self._take(self._name(word), value)

    def _name(self, word: str) -> str:
        """The kernel's word for a caller's."""
        outputs = [name for name in self.face.outputs if name != WORKSPACE]
        return outputs[0] if word == OUT and len(outputs) == 1 else word

    def _take(self, name: str, value: Any) -> None:  # noqa: ANN401 - a caller's
        if name in self.face.numbers:
            self.said[name] = value
        elif name in self.face.sizes and (name not in self.face.arguments or _is_size(value)):
            self.said[name] = self._size(name, value)
        elif name in self.face.arguments:
            self.arrays[name] = value
        else:
            known = self.face.names()
            hint = nearest(name, known) or f"it takes {', '.join(known)}"
            raise ProblemError(f"takes no `{name}`", where=self.face.kernel, hint=hint)

    def _size(self, name: str, value: object) -> int:
        """A size: an integer; where it counts nothing, a truth, a word of an axis or a type too."""
        counts, kernel = name in self.face.counted, self.face.kernel
        if isinstance(value, bool | np.bool_) and not counts:
            return int(value)
        is_word = isinstance(value, DType) or not isinstance(value, _NUMBERS)
        if is_word and name in self.face.compared and not counts:
            return _of_word(name, value, kernel)
        return integer(value, name, least=0, where=kernel)


_NUMBERS = bool | np.bool_ | int | float | np.integer | np.floating


def _is_size(value: object) -> bool:
    return isinstance(value, int | np.integer | str)


def _of_word(name: str, value: object, kernel: str) -> int:
    """The value of an axis' word, or an element type of any framework."""
    try:
        return dtype_of(value)
    except ProblemError:
        if isinstance(value, str):
            return Word(value)
        what = f"`{name}` must be an integer or a type, not a {type(value).__name__}"
        raise ProblemError(what, where=kernel) from None
