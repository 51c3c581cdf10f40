"""Few runs that meet every pair: of any two factors, each two of their values that can meet do.

Faults that need three things at once are rarer than those that need two, and pairs are covered by
about as many rows as the two largest factors have pairs. Greedy; the same rows for the same seed.
"""

import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

T = TypeVar("T")
Factors = Mapping[str, Hashable]
Pair = tuple[tuple[str, Hashable], tuple[str, Hashable]]

TRIES = 24
"""Candidates looked at for one row; more make fewer rows and take longer."""


def cover(candidates: Sequence[T], factors: Callable[[T], Factors], seed: int = 0) -> Iterator[T]:
    """Candidates that together have every pair of values that any candidate has.

    Args:
        candidates: every row that is possible.
        factors: the values of a candidate by factor.
        seed: of the choice among equals.

    """
    holders = _holders(candidates, factors)
    missing = dict.fromkeys(holders)
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    while missing:
        holding = holders[next(iter(missing))]
        tried = holding if len(holding) <= TRIES else chance.sample(holding, TRIES)
        best = max(tried, key=lambda i: sum(p in missing for p in _pairs(factors(candidates[i]))))
        for pair in _pairs(factors(candidates[best])):
            missing.pop(pair, None)
        yield candidates[best]


def _holders(candidates: Sequence[T], factors: Callable[[T], Factors]) -> dict[Pair, list[int]]:
    """Which candidates have each pair."""
    holders: dict[Pair, list[int]] = {}
    for index, candidate in enumerate(candidates):
        for pair in _pairs(factors(candidate)):
            holders.setdefault(pair, []).append(index)
    return holders


def _pairs(factors: Factors) -> Iterator[Pair]:
    return combinations(factors.items(), 2)
