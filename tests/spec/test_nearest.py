"""The word that was probably meant."""

import pytest

from kernelpack.spec.nearest import nearest


@pytest.mark.parametrize(
    ("word", "expected"), [("TILE_K", "did you mean `TILE_N`?"), ("quaternion", "")]
)
def test_nearest(word, expected):
    """A near word is named, a far one is not."""
    assert expected == nearest(word, ("TILE_N", "STAGES"))


def test_as_near():
    """Of words that are as near, the first is named."""
    assert nearest("sm_100", ("sm_90a", "sm_100a", "sm_100f")) == "did you mean `sm_100a`?"
