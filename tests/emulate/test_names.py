"""Names of kernels: as compilers make them, as people read them."""

import pytest

from kernelpack.emulate import names

SUM = "_Z3sumIfLi4EEvPKT_PS0_i"
INNER = "_ZN12_GLOBAL__N_14fillEPfi"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (SUM, "sum<float, 4>"),
        (INNER, "(anonymous namespace)::fill"),
        ("scale", "scale"),
        ("_Znonsense", "_Znonsense"),
        ("k" * 100, "k" * 56 + "…" + "k" * 15),
    ],
)
def test_short_names(name, short):
    """Without parameters, and no longer than a line."""
    assert names.shorten(name) == short


@pytest.mark.parametrize("pattern", ["_Z3sum*", "*sum<float, 4>*", "void sum*(float const*, *)"])
def test_patterns(pattern):
    """Of either name."""
    assert names.matches(SUM, pattern)
    assert not names.matches("_Z4fillPf", pattern)


def test_without_a_demangler(monkeypatch):
    """Names stay as they are."""
    monkeypatch.setattr(names, "_LIBRARY", "libnowhere.so")
    names._demangler.cache_clear()
    names.readable.cache_clear()
    assert names.readable(SUM) == SUM
    names._demangler.cache_clear()
    names.readable.cache_clear()
