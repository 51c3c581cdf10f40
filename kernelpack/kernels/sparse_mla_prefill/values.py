"""Values of q [t, h, d] and rows [entries, d]: each kind takes another path of the softmax."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kernelpack.kernels.sparse_mla_prefill.choices import Indices, Random
from kernelpack.kernels.sparse_mla_prefill.problem import Problem

Floats = NDArray[np.float32]
Made = tuple[Floats, Floats]
Values = Callable[[Random, Problem, Indices], Made]


def _normal(random: Random, problem: Problem, _entries: Indices, *, q: float = 0.1) -> Made:
    depth = problem.row.width
    tokens = random.standard_normal((problem.t, problem.h, depth), np.float32) * np.float32(q)
    rows = random.standard_normal((problem.entries, depth), np.float32) * np.float32(0.1)
    return tokens, rows


def _shifted(random: Random, problem: Problem, entries: Indices) -> Made:
    """As FlashMLA's tests: away from zero, and cut at 10."""
    q, rows = _normal(random, problem, entries)
    shift = random.standard_normal(2, np.float32) * np.float32(0.1)
    return np.clip(q + shift[0], -10, 10), np.clip(rows + shift[1], -10, 10)


STEEP = 24.0  # |q| along a direction of length 1, so that q's elements are about 1
REACH = 2.4  # of a row along it: scores reach over 40 in log2 units at scale 1/2


def _sloped(random: Random, problem: Problem, entries: Indices, *, sign: int) -> Made:
    """Scores rise (or fall) along the last token's list, by 40 log2 units in all.

    Rows lie along one direction as far as their place in the list says, and so does that token; of
    the others every key weighs something.
    """
    q, rows = _normal(random, problem, entries)
    along = random.choice([-1.0, 1.0], problem.row.width) / problem.row.width**0.5
    place = np.zeros(problem.entries, np.float32)
    listed = entries[-1, ::-1] if sign > 0 else entries[-1]
    steps = np.linspace(REACH, 0, len(listed), dtype=np.float32)
    is_valid = (listed >= 0) & (listed < problem.entries)
    place[listed[is_valid]] = steps[is_valid]
    rows += np.outer(place, along).astype(np.float32)
    q[-1] += (STEEP * along).astype(np.float32)
    return q, rows


def _cancelling(random: Random, problem: Problem, entries: Indices) -> Made:
    """The lse of each head is nearly zero, and its largest score as low as the list is long.

    One column alone is not zero, so that scores are exact: what an lse is off is the softmax's own.
    """
    shape = (problem.t, problem.h, problem.row.width)
    q, rows = np.zeros(shape, np.float32), np.zeros((problem.entries, shape[2]), np.float32)
    q[..., 0] = np.resize(np.array([1, 1 + 2**-7, 1 - 2**-8], np.float32), problem.h)
    spread = random.standard_normal(problem.entries, np.float32) * np.float32(0.1)
    rows[:, 0] = (spread - np.log(entries.shape[1])) / problem.scale
    return q, rows


VALUES: dict[str, Values] = {
    "normal": _normal,
    "shifted": _shifted,
    "peaked": partial(_normal, q=40.0),
    "rising": partial(_sloped, sign=1),
    "cancelling": _cancelling,
    "falling": partial(_sloped, sign=-1),
}
