"""Parts of a build."""

import pytest

from kernelpack.bundle.shard import Shard, parse_shard, whole_of


@pytest.mark.parametrize(
    ("text", "shard"),
    [
        ("1/1", Shard(number=1, count=1)),
        ("2/3", Shard(number=2, count=3)),
        (f"2/3 of {'0f' * 8}", Shard(number=2, count=3, whole="0f" * 8)),
        ("0/3", None),
        ("4/3", None),
        ("1/3 of 12", None),
        ("1/2/3", None),
        ("", None),
    ],
)
def test_parse(text, shard):
    """A text is a shard or it is not; parts count from 1."""
    assert parse_shard(text) == shard


@pytest.mark.parametrize("text", ["3/4", "3/4 of 0123456789abcdef"])
def test_text(text):
    """A shard's text is what it was read from."""
    assert str(parse_shard(text)) == text


def test_parts_are_a_partition():
    """Every item is in exactly one part."""
    parts = [Shard(number=n, count=3).part(range(8)) for n in (1, 2, 3)]
    assert parts == [(0, 3, 6), (1, 4, 7), (2, 5)]


def test_whole_tells_builds_apart():
    """Other variants, another whole."""
    assert whole_of(["a", "b"]) != whole_of(["a"])
