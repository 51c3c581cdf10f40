"""Choices by measured times: what is near, what is nearest, and what is taken."""

import math
from dataclasses import replace

import pytest

from kernelpack.spec.select import select
from kernelpack.spec.tuned import OCTAVE, Measured, chosen, log2, place_of
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
        ({"m": 64, "k": 4096}, {"m": 64, "k": 4096}, (0, True, True)),
        ({"m": 90, "k": 4096}, {"m": 64, "k": 4096}, (125, True, False)),
        ({"m": 46, "k": 4096}, {"m": 64, "k": 4096}, (122, False, True)),
        ({"m": 46, "k": 5000}, {"m": 64, "k": 4096}, (195, False, False)),
        ({"m": 90, "k": 5000}, {"m": 64, "k": 4096}, (198, True, False)),
        ({"m": 91, "k": 4096}, {"m": 64, "k": 4096}, None),
        ({"m": 45, "k": 4096}, {"m": 64, "k": 4096}, None),
        ({"m": 64, "k": 0}, {"m": 64, "k": 0}, (0, True, True)),
        ({"m": 64, "k": 1}, {"m": 64, "k": 0}, None),
        ({"m": 64, "k": 0}, {"m": 64, "k": 1}, None),
        ({"m": 64, "k": 4096, "sm_count": 132}, {"m": 64, "k": 4096}, (0, True, True)),
    ],
)
def test_place_of(sizes, known, expected):
    """How far, below, above; None beyond half an octave in any size, and between 0 and any."""
    found = place_of(sizes, known)
    assert expected == (found and (found.apart, found.is_below, found.is_above))


ROOM = [
    measured({"a": 100, "b": 60}, m=64),
    measured({"a": 100, "b": 90}, m=80),
    measured({"a": 100, "b": 110}, m=100),
    measured({"a": 100, "b": 110, "c": 1}, m=125),
    measured({"b": 5}, m=150),
    measured({"a": 100, "b": 98}, m=160),
    measured({"a": 100, "b": 98}, m=200),
]
"""Times of a, which costs choose, and of others."""


@pytest.mark.parametrize(
    ("m", "serving", "expected"),
    [
        (64, "ab", "b"),  # measured
        (64, "a", "a"),
        (70, "ab", "b"),  # both agree
        (90, "ab", "a"),  # they do not
        (110, "ab", "a"),
        (125, "abc", "c"),
        (130, "abc", "a"),  # one has no time of c
        (150, "ab", "b"),  # measured, with no time of a
        (150, "a", "a"),
        (155, "ab", "a"),  # what has no time of a is passed over, and 125 says a
        (180, "ab", "a"),  # faster, but not clearly
        (160, "ab", "b"),  # where it was measured that is enough
        (50, "ab", "a"),  # nothing below
        (220, "ab", "a"),  # nothing above
        (0, "ab", "a"),
    ],
)
def test_chosen(m, serving, expected):
    """Where it was measured, between two that agree clearly, and else what costs choose."""
    assert chosen(ROOM, {"m": m}, set(serving), "a") == expected


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], "b"),
        ([measured({"a": 1, "b": 9}, m=75)], "a"),
        ([measured({"a": 1, "b": 9}, m=85)], "a"),
        ([measured({"a": 1, "b": 9}, m=64)], "b"),
    ],
    ids=["two", "nearer below", "nearer above", "as near, later"],
)
def test_the_nearest(others, expected):
    """Of several below, or above, the nearest counts; of equals the first."""
    two = [measured({"a": 9, "b": 1}, m=64), measured({"a": 9, "b": 1}, m=100)]
    assert chosen([*two, *others], {"m": 80}, {"a", "b"}, "a") == expected


def test_between_in_every_size():
    """One that is larger in one size and smaller in another lies on no side."""
    crossed = [measured({"a": 9, "b": 1}, m=64, k=180), measured({"a": 9, "b": 1}, m=100, k=120)]
    assert chosen(crossed, {"m": 80, "k": 150}, {"a", "b"}, "a") == "a"
    straight = [measured({"a": 9, "b": 1}, m=64, k=120), measured({"a": 9, "b": 1}, m=100, k=180)]
    assert chosen(straight, {"m": 80, "k": 150}, {"a", "b"}, "a") == "b"


@pytest.mark.parametrize(("usual", "expected"), [(1055, "a"), (1056, "b")])
def test_clearly(usual, expected):
    """Between, a variant must be faster by a part in 32."""
    two = [measured({"a": usual, "b": 1024}, m=m) for m in (64, 100)]
    assert chosen(two, {"m": 80}, {"a", "b"}, "a") == expected


def tile_of(times, n=64):
    """The tile that is chosen between tile 32, which costs less, and tile 64."""
    variants = [small.variant(tile, cost=f"n + {tile}") for tile in (32, 64)]
    ids = {tile: variant.id for tile, variant in zip((32, 64), variants, strict=True)}
    known = [measured({ids[tile]: time for tile, time in times.items()}, n=64)]
    return dict(select(variants, {"n": n}, (10, 0), known).axes)["TILE"]


@pytest.mark.parametrize(
    ("times", "n", "tile"),
    [
        ({32: 900, 64: 800}, 64, 64),
        ({32: 900, 64: 800}, 65, 32),
        ({32: 800, 64: 900}, 64, 32),
        ({32: 800, 64: 800}, 64, 32),
        ({64: 10**6}, 64, 64),
    ],
    ids=str,
)
def test_select(times, n, tile):
    """Times choose where they were measured, costs elsewhere; of equal times the first by id."""
    assert tile_of(times, n) == tile


def test_a_guard_still_turns_away():
    """A variant that does not serve is not taken, however fast it was."""
    slow, fast = small.variant(32), replace(small.variant(64, when="n < 64"))
    known = [measured({slow.id: 900, fast.id: 1}, n=64)]
    assert select([slow, fast], {"n": 64}, (10, 0), known).id == slow.id


def test_an_octave():
    """A size and its double are an octave apart, wherever they lie."""
    assert {log2(2 * value) - log2(value) for value in (1, 3, 77, 10**6 + 1, 2**60)} == {OCTAVE}
