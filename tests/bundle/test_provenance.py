"""Provenance as pairs of texts."""

from dataclasses import replace

import pytest

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


@pytest.mark.parametrize(
    ("licences", "expected"),
    [
        ({}, ""),
        ({"manifests/a.yaml": "MIT"}, ""),
        ({"manifests/a.yaml": "MIT", "manifests/b.yaml": "MIT"}, "MIT"),
        ({"manifests/a.yaml": "MIT", "manifests/b.yaml": "Apache-2.0"}, "Apache-2.0 AND MIT"),
        ({"templates/a.cu.j2": "MIT"}, ""),
    ],
)
def test_licence(licences, expected):
    """All kernels have a licence where each manifest states one; then it is all of those."""
    sources = dict.fromkeys(("manifests/a.yaml", "manifests/b.yaml", "templates/a.cu.j2"), "0")
    assert expected == replace(PROVENANCE, sources=sources, licences=licences).licence
