"""Partial evaluation: as much of an expression as its constants allow, and no other value."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpack.errors import ExpressionError
from kernelpack.manifest.partial import partial
from kernelpack.spec.expr import constant, evaluate, parse

CONSTANTS = {"TILE": 64, "ZERO": 0}


@pytest.mark.parametrize(
    ("text", "operations"),
    [
        ("TILE * 2", 1),
        ("m + TILE * 2", 3),
        ("m * (TILE == 64)", 3),
        ("m if TILE == 64 else m // ZERO", 1),
        ("m // ZERO if TILE == 16 else k", 1),
        ("m if k else TILE", 4),
        ("cdiv(m, TILE) + k", 5),
    ],
)
def test_as_much_as_possible(text, operations):
    """A constant part is its value, and a branch never taken is gone."""
    assert operations == len(partial(parse(text), CONSTANTS).code)


def test_a_constant_is_a_constant():
    """An expression of constants alone is their value."""
    assert partial(parse("cdiv(TILE, 10)"), CONSTANTS) == constant(7)


def test_a_part_without_a_value_waits():
    """A zero divisor beside a name is an error only when it is evaluated."""
    rest = partial(parse("m + TILE // ZERO"), CONSTANTS)
    with pytest.raises(ExpressionError, match="divides by zero"):
        evaluate(rest, {"m": 1})


def test_constants_without_a_value():
    """Constants alone without a value are an error at once, in the words of the manifest."""
    with pytest.raises(ExpressionError, match="`TILE // ZERO` divides by zero"):
        partial(parse("TILE // ZERO"), CONSTANTS)


def expressions() -> st.SearchStrategy[str]:
    leaves = st.integers(0, 9).map(str) | st.sampled_from(["TILE", "m", "k"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "<", "and"]), inner),
            st.builds("({} if {} else {})".format, inner, inner, inner),
            st.builds("max({}, {})".format, inner, inner),
            st.builds("(not {})".format, inner),
        ),
        max_leaves=12,
    )


@settings(deadline=None)
@given(expressions(), st.integers(-5, 5), st.integers(-5, 5))
def test_the_value_is_the_same(text, m, k):
    """What is left is worth what the whole is worth."""
    whole = evaluate(parse(text), {"TILE": 64, "m": m, "k": k})
    assert whole == evaluate(partial(parse(text), CONSTANTS), {"m": m, "k": k})
