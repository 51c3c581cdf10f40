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
    pairs_of = _Pairs(apart)
    pairs = [pairs_of(factors(candidate)) for candidate in candidates]
    holders = _holders(pairs)
    missing = dict.fromkeys(holders)
    _meet(missing, (pairs_of(factors(row)) for row in done))
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


class _Pairs:
    """The pairs of rows; which of the factors make them is the same for most rows."""

    def __init__(self, apart: Collection[frozenset[str]]) -> None:
        self.apart = apart
        self.places: dict[tuple[str, ...], list[tuple[int, int]]] = {}

    def __call__(self, factors: Factors) -> tuple[Pair, ...]:
        names, items = tuple(factors), tuple(factors.items())
        if names not in self.places:
            self.places[names] = [
                (i, j)
                for i, j in combinations(range(len(names)), 2)
                if frozenset((names[i], names[j])) not in self.apart
            ]
        return tuple([(items[i], items[j]) for i, j in self.places[names]])
