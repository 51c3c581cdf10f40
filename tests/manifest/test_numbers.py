"""Numbers of a call: how a manifest declares them, and what takes them."""

import pytest

from kernelpack.errors import ManifestError
from kernelpack.formats.dtype import DType
from kernelpack.manifest.expand import expand
from kernelpack.manifest.reader import parse
from kernelpack.manifest.schema import load_document
from kernelpack.spec.params import NumberParam
from kernelpack.spec.variant import Number
from tests.manifest.small import TEXT, mistake, small

SCALAR = "  - {name: rows, scalar: u32, value: m}\n"
DECLARED = "numbers:\n  eps: what is added\n  alpha: {doc: a factor, default: 1e-6}\naxes:\n"
TAKEN = (
    SCALAR
    + "  - {name: eps, scalar: DTYPE, value: eps}\n  - {name: a, scalar: fp64, value: alpha}\n"
)


def with_numbers(*changes):
    """The small manifest with two numbers, each of some texts replaced by another."""
    text = TEXT.replace("axes:\n", DECLARED, 1).replace(SCALAR, TAKEN, 1)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return expand(load_document(parse(text, "small.yaml")))


def refused(*changes):
    """The error of that manifest."""
    with pytest.raises(ManifestError) as error:
        with_numbers(*changes)
    return error.value


def test_numbers_of_a_variant():
    """A variant knows its numbers; a parameter takes one in a type, which an axis may name."""
    variant = with_numbers()[0]
    assert variant.numbers == (
        Number(name="eps", doc="what is added"),
        Number(name="alpha", doc="a factor", default=1e-6),
    )
    assert variant.params[-2:] == (
        NumberParam(name="eps", dtype=DType.BF16, number="eps"),
        NumberParam(name="a", dtype=DType.FP64, number="alpha"),
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1.0), ("-2.5", -2.5), (".5", 0.5), ("'1e3'", 1000.0), ("inf", float("inf"))],
)
def test_defaults(text, value):
    """A default is written as people write numbers, with quotes or without."""
    assert with_numbers(("1e-6", text))[0].numbers[1].default == value


@pytest.mark.parametrize(
    ("old", "new", "what", "line"),
    [
        ("1e-6", "x", "`x` is not a number", 12),
        ("1e-6", "010", "`010` is not a number", 12),
        ("1e-6", "nan", "`nan` is not a number", 12),
        ("1e-6", "true", "`true` is not a number", 12),
        ("1e-6", "1e999", "`1e999` does not fit in 64 bits", 12),
        ("default: 1e-6", "defalt: 1", "unknown key `defalt`", 12),
        ("  eps: what", "  EPS: what", "`EPS` is not a lower_case name", 11),
        ("  eps: what", "  m: what", "`m` is already defined under `sizes`", 11),
        ("  eps: what", "  scales: x\n  eps: what", "`scales` is an argument too", 11),
        ("  eps: what", "  spare: x\n  eps: what", "number `spare` reaches no parameter", 11),
        ("value: eps", "value: esp", "`esp` is not a number of the call", 54),
        ("value: eps", "value: m", "`m` is not a number of the call", 54),
        ("value: eps", "value: 2 * eps", "`2 * eps` is not a number of the call", 54),
        ("scalar: DTYPE", "scalar: TILE", "`16` is not a type that fits here", 54),
        ("scalar: DTYPE", "scalar: e4m3", "`e4m3` is not a type that fits here", 54),
        ("scalar: DTYPE", "scalar: u32", "`eps` is a number of the call", 54),
        ("cost: waves", "cost: eps * waves", "`eps` is a number of the call", 65),
    ],
)
def test_refused(old, new, what, line):
    """What is not a number, or no place for one, is refused where it is."""
    error = refused((old, new))
    assert what in error.what
    assert error.where.split(":")[1] == str(line)


def test_a_default_fits_the_type():
    """A default that a parameter's type cannot hold is refused where it is."""
    error = refused(("1e-6", "1e39"), ("fp64", "fp32"))
    assert error.what == "parameter `a`: 1e+39 does not fit in fp32"
    assert error.where == "small.yaml:12:35"


def test_a_float_takes_a_number():
    """Without a number, a parameter of floats has nothing to take."""
    error = mistake("scalar: u32", "scalar: fp32")
    assert error.hint == "name it under `numbers`"


def test_none():
    """A manifest need have no numbers."""
    assert expand(small())[0].numbers == ()
