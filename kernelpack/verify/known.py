"""Inputs and expected outputs of the cases looked at last: a worker meets a case several times.

Other variants run it, and other interleavings. Oracles of one's own are asked each time: what they
do to the arrays is theirs to say.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelpack.kernels.definition import Arrays, Case, Definition, Expected

MOST_BYTES = 1 << 26
"""Of arrays that are kept; a worker's other needs are several times as much."""


@dataclass
class _Known:
    """One case: its inputs, and what comes of them as soon as somebody asks; their bytes."""

    arrays: Arrays
    expected: Mapping[str, Expected] | None = None
    bytes: int = 0

    def __post_init__(self) -> None:
        self.bytes = sum(np.asarray(a).nbytes for a in self.arrays.values())

    def learn(self, expected: Mapping[str, Expected]) -> None:
        """Keep what comes of the inputs."""
        self.expected = expected
        self.bytes += sum(map(_bytes, expected.values()))


def _bytes(one: Expected) -> int:
    own = np.asarray(one.value).nbytes + np.asarray(one.bound).nbytes
    return own + sum(map(_bytes, one.elsewhere.values()))


@dataclass
class Cases:
    """The cases looked at last, as many as fit."""

    kept: OrderedDict[Any, _Known] = field(default_factory=OrderedDict)

    def inputs(self, definition: Definition, case: Case) -> Arrays:
        """The input arrays of a case; nobody may change them."""
        if definition.origin:
            return definition.inputs(case)
        return self._of(definition, case).arrays

    def expected(
        self, definition: Definition, case: Case, arrays: Arrays
    ) -> Mapping[str, Expected]:
        """What comes of the inputs of a case."""
        if definition.origin:
            return definition.expected(case, arrays)
        known = self._of(definition, case)
        if known.expected is None:
            known.learn(definition.expected(case, arrays))
            self._forget()
        assert known.expected is not None
        return known.expected

    def _of(self, definition: Definition, case: Case) -> _Known:
        key = definition.stem, definition.version, case
        if key not in self.kept:
            self.kept[key] = _Known(definition.inputs(case))
            self._forget()
        self.kept.move_to_end(key)
        return self.kept[key]

    def _forget(self) -> None:
        """Let go of what was not asked for the longest."""
        room = MOST_BYTES - sum(known.bytes for known in self.kept.values())
        while room < 0 and len(self.kept) > 1:
            room += self.kept.popitem(last=False)[1].bytes
