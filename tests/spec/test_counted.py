"""Counts in sentences."""

import pytest

from kernelpack.spec.counted import counted


@pytest.mark.parametrize(
    ("count", "words", "expected"),
    [
        (1, ("run",), "1 run"),
        (0, ("run",), "0 runs"),
        (2, ("run",), "2 runs"),
        (2, ("entry", "entries"), "2 entries"),
        (1, ("entry", "entries"), "1 entry"),
    ],
)
def test_counted(count, words, expected):
    """One is one; everything else, none too, is several."""
    assert expected == counted(count, *words)
