"""Where new tokens are: their positions, and their rows in the cache, as the kernel finds them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.mla_decode_absorb.problem import Problem

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Of each token its position in its sequence, and its virtual row; -1: it has none."""

    positions: Whole
    rows: Whole


def find(problem: Problem, arrays: Arrays) -> Places:
    """The places of a call's tokens; one that freqs has no position for has no row either."""
    if problem.position_words:
        positions, encoded = _words(problem, arrays, "positions"), np.full(problem.t, -1)
    else:
        positions, encoded = _followed(problem, arrays)
    if problem.slot_words:
        encoded = _words(problem, arrays, "slots")
    there = (positions >= 0) & (positions < problem.most_positions)
    lookup = problem.lookup
    named = there & (encoded >= 0) & (encoded < lookup.blocks * lookup.page)
    block, offset = np.divmod(np.where(named, encoded, 0), lookup.page)
    return Places(
        positions=np.where(there, positions, -1),
        rows=np.where(named, block * problem.block_stride + offset, -1),
    )


def _words(problem: Problem, arrays: Arrays, name: str) -> Whole:
    """Numbers of one word or two; what takes more than 31 bits is -1."""
    raw = arrays[name].reshape(problem.t, -1).astype(np.int64)
    return np.where((raw[:, 0] >= 2**31) | raw[:, 1:].any(1), -1, raw[:, 0])


def _followed(problem: Problem, arrays: Arrays) -> tuple[Whole, Whole]:
    """Positions and encoded indices of tokens that follow their sequences, the first that fits."""
    offsets, lengths = (arrays[name].astype(np.int64) for name in ("row_offsets", "lengths"))
    count = len(lengths)
    if problem.has_batch:
        count = min(count, int(arrays["batch"].view(np.uint32)[0]))
    tokens = np.arange(problem.t)
    positions, sequence = np.full(problem.t, -1), np.zeros(problem.t, np.int64)
    for b in reversed(range(count)):
        its = (offsets[b] <= tokens) & (tokens < offsets[b + 1])
        t = (lengths[b] + tokens - offsets[b]) % 2**32
        positions[its], sequence[its] = np.where(t < 2**31, t, -1)[its], b
    encoded = problem.lookup.encode(sequence, positions, arrays["table"], tokens)
    return positions, np.where(positions < 0, -1, encoded)
