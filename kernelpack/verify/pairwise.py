"""Few runs that meet every pair: of any two factors, each two of their values that can meet do.

Faults that need three things at once are rarer than those that need two, and pairs are covered by
about as many rows as the two largest factors have pairs. Greedy; the same rows for the same seed.
"""

import random
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

T = TypeVar("T")
Factors = Mapping[str, Hashable]
Pair = tuple[tuple[str, Hashable], tuple[str, Hashable]]

TRIES = 24
"""Candidates looked at for one row; more make fewer rows and take longer."""


def cover(
    candidates: Sequence[T],
    factors: Callable[[T], Factors],
    seed: int = 0,
    *,
    done: Iterable[T] = (),
    apart: Collection[frozenset[str]] = (),
) -> Iterator[T]:
    """Candidates that together have every pair of values that any candidate has.

    Args:
        candidates: every row that is possible.
        factors: the values of a candidate by factor.
        seed: of the choice among equals.
        done: rows that are there already, whose pairs need no other.
        apart: two factors whose values need not meet.

    """
    pairs = [_pairs(factors(candidate), apart) for candidate in candidates]
    holders = _holders(pairs)
    missing = dict.fromkeys(holders)
    _meet(missing, (_pairs(factors(row), apart) for row in done))
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    while missing:
        holding = holders[next(iter(missing))]
        tried = holding if len(holding) <= TRIES else chance.sample(holding, TRIES)
        best = max(tried, key=lambda i: sum(pair in missing for pair in pairs[i]))
        _meet(missing, [pairs[best]])
        yield candidates[best]


def _holders(rows: Iterable[Iterable[Pair]]) -> dict[Pair, list[int]]:
    """Which rows have each pair."""
    holders: dict[Pair, list[int]] = {}
    for index, pairs in enumerate(rows):
        for pair in pairs:
            holders.setdefault(pair, []).append(index)
    return holders


def _meet(missing: dict[Pair, None], rows: Iterable[Iterable[Pair]]) -> None:
    """Take away the pairs that rows have."""
    for pairs in rows:
        for pair in pairs:
            missing.pop(pair, None)


def _pairs(factors: Factors, apart: Collection[frozenset[str]]) -> tuple[Pair, ...]:
    found = combinations(factors.items(), 2)
    return tuple(pair for pair in found if frozenset(name for name, _ in pair) not in apart)
