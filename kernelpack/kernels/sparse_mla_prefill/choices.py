"""Which entries a token lists and how many of them count: what kernels must serve or survive."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kernelpack.kernels.sparse_mla_prefill.problem import Problem

Random = np.random.Generator
Indices = NDArray[np.int64]

ZOO = (-(2**31), -123456, -1, 114514, 1919810, 2147480000, 2**31 - 1)
"""Indices that servers were seen to pass; the number of entries and the one after join them."""

GARBAGE_LENGTHS = (-1, 2**31 - 1, -(2**31), 1 << 20, 0)

# --- the entries of each token: [t, topk] ---


def _random(random: Random, problem: Problem) -> Indices:
    """Distinct ones as long as there are enough."""
    pool, shape = problem.entries, (problem.t, problem.topk)
    if pool < problem.topk:
        return random.integers(0, pool, shape)
    return np.array([random.permutation(pool)[: problem.topk] for _ in range(problem.t)]).reshape(
        shape
    )


def _bad(random: Random, problem: Problem, share: float = 0.5) -> Indices:
    """Some entries are of the zoo, alone and in runs of eight, which other kernels skip whole."""
    zoo = np.array([*(z for z in ZOO if not 0 <= z < problem.entries), problem.entries])
    entries = _random(random, problem)
    runs = np.repeat(random.random((problem.t, -(-problem.topk // 8))) < share, 8, axis=1)
    alone = random.random(entries.shape) < share / 4
    is_bad = runs[:, : problem.topk] | alone
    return np.where(is_bad, random.choice(zoo, entries.shape), entries)


def _shared(random: Random, problem: Problem) -> Indices:
    """All tokens list the same entries."""
    return np.repeat(_random(random, problem)[:1], problem.t, axis=0)


def _duplicates(random: Random, problem: Problem) -> Indices:
    """Few rows, each many times."""
    return random.integers(0, min(5, problem.entries), (problem.t, problem.topk))


def _invalid(random: Random, problem: Problem) -> Indices:
    """Every second token has no valid entry, beginning with the first."""
    entries = _random(random, problem)
    entries[::2] = _bad(random, problem, share=1.0)[::2]
    return entries


def _last(random: Random, problem: Problem) -> Indices:
    """Only the last entries are valid, so that all blocks before are without a key."""
    entries = _random(random, problem)
    entries[:, : max(0, problem.topk - 3)] = -1
    return entries


def _first(random: Random, problem: Problem) -> Indices:
    """Only the first entry is valid."""
    entries = _random(random, problem)
    entries[:, 1:] = -1
    return entries


def _sparse(random: Random, problem: Problem) -> Indices:
    """One entry in forty is valid; whole blocks are not."""
    entries = _random(random, problem)
    entries[random.random(entries.shape) > 1 / 40] = -1
    return entries


CHOICES: dict[str, Callable[[Random, Problem], Indices]] = {
    "random": _random,
    "bad": _bad,
    "shared": _shared,
    "duplicates": _duplicates,
    "invalid": _invalid,
    "last": _last,
    "first": _first,
    "sparse": _sparse,
}

# --- how many of them count: [t], or none ---


def _none(_random: Random, _problem: Problem) -> Indices:
    return np.zeros(0, np.int64)


def _full(_random: Random, problem: Problem) -> Indices:
    return np.full(problem.t, problem.topk)


def _uneven(random: Random, problem: Problem) -> Indices:
    return random.integers(0, problem.topk + 1, problem.t)


def _zero(_random: Random, problem: Problem) -> Indices:
    """None at all for every second token, beginning with the first."""
    lengths = np.full(problem.t, problem.topk)
    lengths[::2] = 0
    return lengths


def _garbage(_random: Random, problem: Problem) -> Indices:
    return np.resize(np.array(GARBAGE_LENGTHS), problem.t)


def _exactly(length: int, _random: Random, problem: Problem) -> Indices:
    return np.full(problem.t, min(length, problem.topk))


LENGTHS: dict[str, Callable[[Random, Problem], Indices]] = {
    "none": _none,
    "full": _full,
    "uneven": _uneven,
    "zero": _zero,
    "garbage": _garbage,
    **{str(length): partial(_exactly, length) for length in (1, 63, 64, 65, 127, 128, 129)},
}
