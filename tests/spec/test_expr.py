"""Integer expressions: what parses, what it is worth, and that it is Python's arithmetic."""

import pickle
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpack.errors import ExpressionError
from kernelpack.formats.dtype import DType
from kernelpack.spec.expr import Op, Word, constant, evaluate, fold, inline, parse, symbol

NAMES = {"m": 7, "k": 4096, "zero": 0, "down": -3}
BINARY = ("+", "-", "*", "//", "%", "<", "<=", "==", "!=", ">", ">=")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 + 3 * 4", 14),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("7 // -2", -4),
        ("7 % -3", -2),
        ("1 < 2 < 3", 1),
        ("1 < 2 > 3", 0),
        ("not 5", 0),
        ("5 and 3", 1),
        ("0 or 4", 1),
        ("0 or 0", 0),
        ("10 if m == 7 else 20", 10),
        ("10 if m != 7 else 20", 20),
        ("min(3, 1, 2)", 1),
        ("max(3, 1, 2)", 3),
        ("cdiv(7, 2)", 4),
        ("cdiv(-7, 2)", -3),
        ("align_up(5, 4)", 8),
        ("align_up(8, 4)", 8),
        ("align_down(7, 4)", 4),
        ("align_down(-7, 4)", -8),
        ("most_parts(12, 1)", 0),
        ("most_parts(12, 2)", 6),
        ("most_parts(12, 4)", 9),
        ("most_parts(3, 8)", 7),
        ("most_parts(0, 16)", 0),
        ("pow2_floor(1)", 1),
        ("pow2_floor(63)", 32),
        ("k // m", 585),
        ("- - m", 7),
        ("0x10 + 1_000", 1016),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775807 - 1", -(2**63)),
    ],
)
def test_value(text, expected):
    """An expression is worth what its rules say."""
    assert expected == evaluate(parse(text), NAMES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m ** 2", "not allowed"),
        ("m / 2", "not allowed"),
        ("m << 2", "not allowed"),
        ("~m", "not allowed"),
        ("1.5", "not allowed"),
        ("None", "not allowed"),
        ("m.k", "not allowed"),
        ("m[0]", "not allowed"),
        ("[1]", "not allowed"),
        ("(lambda: 1)()", "not allowed"),
        ("__import__('os')", "not allowed"),
        ("min(*m, 1)", "not allowed"),
        ("max(a=1)", "not allowed"),
        ("f'{m}'", "not allowed"),
        ("m in (1, 2)", "not allowed"),
        ("m is k", "not allowed"),
        ("cdiv(1)", "takes 2 arguments, not 1"),
        ("cdiv(1, 2, 3)", "takes 2 arguments, not 3"),
        ("pow2_floor(1, 2)", "takes 1 arguments, not 2"),
        ("min()", "takes 2 arguments, not 0"),
        ("9223372036854775808", "64 bits"),
        ("m +", "is not an integer expression"),
        ("", "is not an integer expression"),
        ("ｍ + 1", "it is not ASCII"),  # noqa: RUF001 - a wide letter
        ("m + ٣", "it is not ASCII"),
        ("m; k", "is not an integer expression"),
        ("(" * 500, "is not an integer expression"),
    ],
)
def test_outside_the_language(text, message):
    """What is not part of the language is refused when it is parsed."""
    with pytest.raises(ExpressionError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m // zero", "divides by zero"),
        ("m % zero", "divides by zero"),
        ("cdiv(m, zero)", "divides by zero"),
        ("align_up(m, zero)", "divides by zero"),
        ("align_down(m, zero)", "divides by zero"),
        ("most_parts(down, 2)", "needs 0 or more, and 1 to 16"),
        ("most_parts(m, zero)", "needs 0 or more, and 1 to 16"),
        ("most_parts(m, 17)", "needs 0 or more, and 1 to 16"),
        ("pow2_floor(zero)", "needs a positive number"),
        ("pow2_floor(down)", "needs a positive number"),
        ("pow2_floor(m < 0)", "of 0: needs a positive number"),
        ("pow2_floor(not m)", "of 0: needs a positive number"),
        ("pow2_floor(m and zero)", "of 0: needs a positive number"),
        ("9223372036854775807 + m", "64 bits"),
        ("(-9223372036854775807 - 1) * -1", "64 bits"),
        ("-(-9223372036854775807 - 1)", "64 bits"),
        ("q + 1", "needs `q`"),
        ("m // zero if zero else 1", "divides by zero"),
    ],
)
def test_without_a_value(text, message):
    """An expression that has no value for these names says why; both branches count."""
    with pytest.raises(ExpressionError, match=message):
        evaluate(parse(text), NAMES)


def fitting(ctas):
    """Two GPCs, of 18 and 8 multiprocessors."""
    return 18 // ctas + 8 // ctas


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fitting_clusters(1)", 26),
        ("fitting_clusters(4) * 4", 24),
        ("min(fitting_clusters(m), 2)", 2),
        ("fitting_ctas(3)", 8),
        ("fitting_ctas(m)", 3),
        ("fitting_ctas(k)", 1),
    ],
)
def test_what_the_device_is_asked(text, expected):
    """Clusters of so many CTAs that fit; the most CTAs of so many clusters that fit."""
    assert expected == evaluate(parse(text), NAMES, fitting)


@pytest.mark.parametrize("text", ["fitting_clusters(zero)", "fitting_ctas(down)"])
def test_what_no_device_can_be_asked(text):
    """A cluster has a CTA, and there is a cluster."""
    with pytest.raises(ExpressionError, match="needs a positive number"):
        evaluate(parse(text), NAMES, fitting)


def test_nobody_to_ask():
    """Where no kernel is at hand, the error says who may ask."""
    with pytest.raises(ExpressionError, match="asks how many clusters fit, which only a launch kn"):
        evaluate(parse("fitting_clusters(2)"), NAMES)


@pytest.mark.parametrize("text", ["fitting_clusters(2)", "1 + fitting_ctas(2)"])
def test_what_a_device_says_is_no_constant(text):
    """It names nothing, and is worth something else on every device."""
    expr = parse(text)
    assert (expr.names, expr.asks_device, expr.constant) == (frozenset(), True, None)
    assert fold(expr, {"m": 1}) == expr


def test_unknown_name_lists_the_known():
    """The hint of an unknown name is every name that has a value."""
    with pytest.raises(ExpressionError, match="known: m, k") as error:
        evaluate(parse("mm"), {"m": 1, "k": 2})
    assert error.value.hint == "known: m, k"


@pytest.mark.parametrize("dtype", list(DType))
def test_a_quoted_type_is_its_code(dtype):
    """`'bf16'` in an expression is the code that a bundle stores."""
    assert int(dtype) == symbol(dtype.label)


def test_other_words_are_far_from_types_and_sizes():
    """A word that is not a type has a number of its own, above any size that occurs."""
    assert 1 << 56 < symbol("decode") != symbol("prefill") > 1 << 56


def test_names():
    """An expression knows which names it needs."""
    assert parse("m * cdiv(k, m) + 3").names == {"m", "k"}


@pytest.mark.parametrize(("text", "expected"), [("2 * 3", 6), ("m", None), (5, 5)])
def test_constant(text, expected):
    """An expression without names has a value of its own."""
    assert expected == parse(text).constant


def test_postfix_order():
    """Operands come before their operation, condition before then before else."""
    code = parse("1 if m else k").code
    assert code == ((Op.NAME, "m"), (Op.CONST, 1), (Op.NAME, "k"), (Op.SELECT, 0))


def test_fold_keeps_the_other_names():
    """Folding puts values in and leaves the rest to be named."""
    folded = fold(parse("m * k"), {"k": 3})
    assert (folded.names, evaluate(folded, {"m": 5})) == ({"m"}, 15)


def test_fold_of_everything_is_a_constant():
    """Where no name is left, the value is."""
    assert fold(parse("m * k"), {"m": 5, "k": 3}) == constant(15)


def test_inline():
    """A named expression is written out in its place, once for each time it is named."""
    written_out = inline(parse("tiles * tiles"), {"tiles": parse("cdiv(m, 4)")})
    assert (written_out.names, evaluate(written_out, {"m": 7})) == ({"m"}, 4)


def expressions() -> st.SearchStrategy[str]:
    """Texts that Python and we both read; divisors are never zero."""
    leaves = st.integers(-99, 99).map(str) | st.sampled_from(["m", "k", "down"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*"]), inner),
            st.builds("({} {} {})".format, inner, st.sampled_from(["//", "%"]), st.just("k")),
            st.builds("int({} {} {})".format, inner, st.sampled_from(["<", "==", ">="]), inner),
            st.builds("({} if {} else {})".format, inner, inner, inner),
            st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
            st.builds("(-{})".format, inner),
        ),
        max_leaves=10,
    )


@settings(deadline=None)
@given(expressions())
def test_python_agrees(text):
    """Where both have a value, it is the same one."""
    expected = eval(text, dict(NAMES))
    ours = text.replace("int(", "(")
    assert expected == evaluate(parse(ours), NAMES)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused_by_name(text):
    """No text makes anything but an expression or an ExpressionError."""
    with suppress(ExpressionError):
        assert parse(text).code


@settings(deadline=None)
@given(expressions(), st.sets(st.sampled_from(list(NAMES))))
def test_folding_first_changes_nothing(text, known):
    """An expression is worth the same whether a name gets its value early or late."""
    expr = parse(text.replace("int(", "("))
    early = {name: NAMES[name] for name in known}
    assert evaluate(expr, NAMES) == evaluate(fold(expr, early), NAMES)


@pytest.mark.parametrize("word", ["fp32", "float32"])
def test_a_word_that_was_given(word):
    """It counts as the integer that stands for it, shows as itself, and is copied whole."""
    made = Word(word)
    copied = pickle.loads(pickle.dumps(made))
    assert (made, str(made), f"{copied}") == (symbol(word), word, word)
    assert evaluate(parse(f"x == '{word}'"), {"x": made})
