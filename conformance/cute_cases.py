"""What `cute_emit.py` compiles of `cute_kernels.py`, and the launches of `ptx_host.py`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from conformance.case import Case, Map, Result, product

_ROWS, _COLUMNS, _DEPTH = 256, 512, 320
_COUNT = 1000


@dataclass(frozen=True, slots=True)
class Compiled:
    """How a kernel is compiled and launched.

    `tensors` are the shapes of what it is called with. `maps` are the boxes and swizzles of its
    tensor maps, which the host half of a CuTe program makes: tiles, 128 bytes wide.
    """

    element: str
    tensors: tuple[tuple[int, ...], ...]
    shared: int = 0
    maps: tuple[tuple[tuple[int, int], int], ...] = ()


_SHAPES = ((_ROWS, _DEPTH), (_COLUMNS, _DEPTH), (_ROWS, _COLUMNS))
COMPILED = {
    "add": Compiled("Float32", ((_COUNT,),) * 3),
    "matmul": Compiled("Float16", _SHAPES, 148 * 1024, (((128, 64), 3), ((256, 64), 3))),
}


def add(rng: np.random.Generator) -> Case:
    """The last block has threads with nothing to do."""
    a, b = (rng.standard_normal(_COUNT).astype(np.float32) for _ in range(2))
    c, want = np.full(_COUNT, np.nan, np.float32), a.astype(np.float64) + b
    return Case((a, b, c), (8, 1, 1), (Result(c, want, 2.0**-24 * np.abs(want)),))


def matmul(rng: np.random.Generator) -> Case:
    """Four tiles; the ring is used again within one."""
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in _SHAPES[:2])
    c = np.full(_SHAPES[2], np.nan, np.float16)
    right = product(c, a.astype(np.float64), b.astype(np.float64))
    state = np.zeros((), "V32")[()]  # the atom's: it does not accumulate at first
    return Case((state, Map(a), Map(b), c), (2, 2, 1), (right,))


CASES: dict[str, Callable[[np.random.Generator], Case]] = {"add": add, "matmul": matmul}
