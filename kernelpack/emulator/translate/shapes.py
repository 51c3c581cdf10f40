"""Generated functions that differ in nothing but their registers, handlers and constants.

Python's compiler takes longer than the text does to write, and the code of one kernel repeats its
shapes: its functions are of a tenth as many shapes as there are functions, and another tile of the
kernel has the same. So a shape is compiled once, and each function gives it what is its own.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from kernelpack.emulator.machine.lanes import EVERY
from kernelpack.emulator.machine.warp import Wait, apart, met

_KEPT = 8192
_NUMPY = {
    f"{kind}{size}": getattr(np, f"{word}{8 * size}")
    for kind, word, sizes in (("u", "uint", (1, 2, 4, 8)), ("i", "int", (1, 2, 4, 8)))
    for size in sizes
} | {"f2": np.float16, "f4": np.float32, "f8": np.float64}
_SCOPE = {
    "where": np.where,
    "count": np.count_nonzero,
    "Wait": Wait,
    "apart": apart,
    "met": met,
    "EVERY": EVERY,
    **_NUMPY,
}
"""The names that every generated function may use."""


def function(arguments: str, lines: list[str], own: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of these lines, in which the names of `own` stand for its own things."""
    body = "\n        ".join(lines or ["pass"])
    text = f"def make({', '.join(own)}):\n    def run({arguments}):\n        {body}\n    return run"
    made: Callable[..., Any] = _maker(text)(*own.values())
    return made


@lru_cache(maxsize=_KEPT)
def _maker(text: str) -> Callable[..., Any]:
    """The maker of a shape's functions."""
    scope: dict[str, Any] = dict(_SCOPE)
    exec(compile(text, "<generated>", "exec"), scope)  # noqa: S102
    maker: Callable[..., Any] = scope["make"]
    return maker
