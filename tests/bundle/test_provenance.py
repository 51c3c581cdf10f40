"""Provenance as pairs of texts."""

from dataclasses import replace

from kernelpack.bundle.provenance import from_pairs, to_pairs
from tests.bundle.test_reader import PROVENANCE


def test_there_and_back():
    """Provenance comes back equal."""
    assert from_pairs(to_pairs(PROVENANCE)) == PROVENANCE


def test_sorted():
    """The order of versions and sources does not matter."""
    made = [replace(PROVENANCE, versions=v) for v in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})]
    first, second = (list(to_pairs(p).items()) for p in made)
    assert first == second == sorted(first)


def test_unknown_keys():
    """A key of a later version is left out, a missing one reads as empty."""
    assert from_pairs({"later": "x", "toolchain.release": "13.4"}).release == "13.4"
