"""Sizes as a person types them."""

import pytest

from kernelpack.errors import ProblemError
from kernelpack.kernels.typed import Typed, evenly

DEFAULTS = {"m": "64", "k": "4096"}


def test_defaults():
    """What is not typed has a default, and both are in the name."""
    typed = Typed({"k": "32"}, DEFAULTS, "kernel")
    assert (typed.number("m"), typed.number("k"), typed.name) == (64, 32, "m=64,k=32")


def test_unknown():
    """A name that there is not is refused with those there are."""
    with pytest.raises(ProblemError, match=r"kernel: unknown size `q`\nhint: sizes: m, k"):
        Typed({"q": "1"}, DEFAULTS, "kernel")


@pytest.mark.parametrize("text", ["x", "-1", "0", "1.5", "", "9" * 5000])
def test_number(text):
    """A size is an integer of at least the least one."""
    with pytest.raises(
        ProblemError, match=f"`m` must be an integer of at least 1, not `{text[:40]}`"
    ):
        Typed({"m": text}, DEFAULTS, "kernel").number("m")


@pytest.mark.parametrize(
    ("rows", "groups", "expected"), [(10, 4, (2, 3, 2, 3)), (2, 3, (0, 1, 1)), (0, 2, (0, 0))]
)
def test_evenly(rows, groups, expected):
    """Groups have the same number of rows, or one more."""
    assert expected == evenly(rows, groups)
