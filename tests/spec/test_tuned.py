"""Choices by measured times: what is near, what is nearest, and what is taken."""

import math
from dataclasses import replace

import pytest

from kernelpack.spec.select import select
from kernelpack.spec.tuned import OCTAVE, Measured, distance, log2, times_for
from tests.verify import small


def measured(times, **sizes):
    return Measured(sizes=sizes, nanoseconds=times)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, 0), (2, 256), (3, 405), (4, 512), (1000, 2551), (2**31, 7936), (2**63 - 1, 16127)],
)
def test_log2(value, expected):
    """256ths of an octave, cut."""
    assert log2(value) == expected


def test_log2_is_the_logarithm():
    """Never more than it, and less than a 256th below it."""
    errors = [256 * math.log2(value) - log2(value) for value in range(1, 20_000)]
    assert min(errors) >= 0
    assert max(errors) < 1


@pytest.mark.parametrize(
    ("sizes", "known", "expected"),
    [
        ({"m": 64, "k": 4096}, {"m": 64, "k": 4096}, 0),
        ({"m": 128, "k": 4096}, {"m": 64, "k": 4096}, 256),
        ({"m": 32, "k": 8192}, {"m": 64, "k": 4096}, 512),
        ({"m": 130, "k": 4096}, {"m": 64, "k": 4096}, None),
        ({"m": 31, "k": 4096}, {"m": 64, "k": 4096}, None),
        ({"m": 64, "k": 0}, {"m": 64, "k": 0}, 0),
        ({"m": 64, "k": 1}, {"m": 64, "k": 0}, None),
        ({"m": 64, "k": 0}, {"m": 64, "k": 1}, None),
        ({"m": 64, "k": 4096, "sm_count": 132}, {"m": 64, "k": 4096}, 0),
    ],
)
def test_distance(sizes, known, expected):
    """Sums of octaves; None beyond one octave in any size, and between 0 and something."""
    assert distance(sizes, known) == expected


ROOM = [
    measured({"a": 5, "b": 3}, m=64),
    measured({"a": 1, "b": 9}, m=96),
    measured({"a": 7, "b": 7}, m=400),
    measured({"c": 1}, m=200),
]


@pytest.mark.parametrize(
    ("m", "serving", "expected"),
    [
        (64, "ab", {"a": 5, "b": 3}),
        (78, "ab", {"a": 5, "b": 3}),
        (79, "ab", {"a": 1, "b": 9}),
        (64, "a", {"a": 5}),
        (200, "ab", {"a": 7, "b": 7}),
        (200, "abc", {"c": 1}),
        (200, "d", {}),
        (1000, "ab", {}),
        (0, "ab", {}),
    ],
)
def test_times_for(m, serving, expected):
    """The nearest that is near and has a time of a variant that serves."""
    assert times_for(ROOM, {"m": m}, set(serving)) == expected


def test_the_first_of_equally_near():
    """Two problems at one distance: the first."""
    twice = [measured({"a": 1}, m=50), measured({"a": 2}, m=200)]
    assert distance({"m": 100}, {"m": 50}) == distance({"m": 100}, {"m": 200})
    assert times_for(twice, {"m": 100}, {"a"}) == {"a": 1}


def chosen(times, n=64):
    """The tile that is chosen between tile 32, which costs less, and tile 64."""
    variants = [small.variant(tile, cost=f"n + {tile}") for tile in (32, 64)]
    ids = {tile: variant.id for tile, variant in zip((32, 64), variants, strict=True)}
    known = [measured({ids[tile]: time for tile, time in times.items()}, n=64)]
    return dict(select(variants, {"n": n}, (10, 0), known).axes)["TILE"]


@pytest.mark.parametrize(
    ("times", "n", "tile"),
    [
        ({32: 900, 64: 800}, 64, 64),
        ({32: 900, 64: 800}, 100, 64),
        ({32: 900, 64: 800}, 200, 32),
        ({32: 800, 64: 900}, 64, 32),
        ({32: 800, 64: 800}, 64, 32),
        ({64: 10**6}, 64, 64),
    ],
    ids=str,
)
def test_select(times, n, tile):
    """Times choose near what was measured, costs elsewhere; of equal times the first by id."""
    assert chosen(times, n) == tile


def test_a_guard_still_turns_away():
    """A variant that does not serve is not taken, however fast it was."""
    slow, fast = small.variant(32), replace(small.variant(64, when="n < 65"))
    known = [measured({slow.id: 900, fast.id: 1}, n=64)]
    assert select([slow, fast], {"n": 66}, (10, 0), known).id == slow.id


def test_an_octave():
    """A size and its double are an octave apart, wherever they lie."""
    assert {log2(2 * value) - log2(value) for value in (1, 3, 77, 10**6 + 1, 2**60)} == {OCTAVE}
