"""A frame gives back what was put in, and nothing else."""

import pytest

from kernelpack.cache.frame import frame, unframe

FRAMED = frame("key", b"data")


def test_round_trip():
    """The data comes back under the key it was written under."""
    assert unframe("key", FRAMED) == b"data"


def test_empty_data_is_data():
    """No bytes are a value, not an absence."""
    assert unframe("key", frame("key", b"")) == b""


@pytest.mark.parametrize(
    "damaged",
    [b"", FRAMED[:-1], FRAMED + b"\n", FRAMED[:-1] + b"A", b"K" + FRAMED[1:], FRAMED[:40]],
    ids=["empty", "shorter", "longer", "data", "magic", "head only"],
)
def test_damage_is_found(damaged):
    """Any other bytes are no frame."""
    assert unframe("key", damaged) is None


def test_a_file_under_another_name_is_found():
    """The key is part of what is digested."""
    assert unframe("another", FRAMED) is None
