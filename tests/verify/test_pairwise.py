"""Pairs are met by few rows."""

from itertools import combinations, product

import pytest

from kernelpack.verify.pairwise import cover

AXES = {"a": range(5), "b": range(4), "c": range(3), "d": range(2)}
ROWS = [dict(zip(AXES, values, strict=True)) for values in product(*AXES.values())]


def pairs(rows):
    return {pair for row in rows for pair in combinations(row.items(), 2)}


@pytest.mark.parametrize("rows", [ROWS, ROWS[::3], ROWS[:1]])
def test_every_pair_is_met(rows):
    """The rows chosen have every pair that any row has."""
    assert pairs(rows) == pairs(cover(rows, dict))


def test_few_rows():
    """They are not many more than the two largest axes have pairs."""
    assert 20 <= len(list(cover(ROWS, dict))) <= 28


def test_what_is_done_is_not_done_again():
    """Rows that are there already meet their pairs: the others are fewer, and none where all is."""
    some = ROWS[::7]
    more = list(cover(ROWS, dict, done=some))
    assert pairs(ROWS) == pairs([*some, *more])
    assert len(more) < len(list(cover(ROWS, dict)))
    assert list(cover(ROWS, dict, done=ROWS)) == []


def test_factors_apart():
    """Two factors that need not meet cost no rows; all other pairs are met."""
    found = list(cover(ROWS, dict, apart=[frozenset("ab")]))
    missed = pairs(ROWS) - pairs(found)
    assert {frozenset(name for name, _ in pair) for pair in missed} == {frozenset("ab")}
    assert len(found) < len(list(cover(ROWS, dict)))


def test_the_same_each_time():
    """The seed decides."""
    assert list(cover(ROWS, dict, seed=3)) == list(cover(ROWS, dict, seed=3))


def test_nothing_to_meet():
    """No candidates, no rows."""
    assert list(cover([], dict)) == []
