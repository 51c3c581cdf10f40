"""The real numbers of a call: what is one, and what a type makes of it."""

import math
import struct

import numpy as np
import pytest

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.spec.number import REALS, code, number, rounded

INF = math.inf


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (1e-6, 1e-6),
        (3, 3.0),
        (-(2**53), -(2.0**53)),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.int8(-1), -1.0),
        (-INF, -INF),
    ],
)
def test_numbers(given, value):
    """Integers and numpy's numbers are numbers too."""
    assert number(given, "eps") == value


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("1e-6", "must be a number, not '1e-6' of type str"),
        (True, "must be a number, not True of type bool"),
        (None, "must be a number, not None"),
        (np.ones(1), "of type ndarray"),
        (math.nan, "must be a number, not NaN"),
        (2**53 + 1, "that a float of 64 bits holds"),
        (10**400, "that a float of 64 bits holds"),
    ],
)
def test_no_numbers(given, what):
    """What is no number is refused by name."""
    with pytest.raises(ProblemError) as error:
        number(given, "eps")
    assert what in error.value.what
    assert error.value.where == "`eps`"


@pytest.mark.parametrize(
    ("value", "dtype", "bits"),
    [
        (1 + 2**-8, DType.BF16, 0x3F80),  # a tie goes to the even one
        (1 + 2**-8 + 2**-40, DType.BF16, 0x3F81),  # by way of fp32 it would be a tie
        (1 + 2**-11 + 2**-40, DType.FP16, 0x3C01),
        (1 + 2**-24 + 2**-50, DType.FP32, 0x3F800001),
        (1e-6, DType.FP32, 0x358637BD),
        (1e-6, DType.FP16, 0x0011),
        (2**-25, DType.FP16, 0),  # half the least: a tie with 0
        (-(2**-25) * 1.5, DType.FP16, 0x8001),
        (-0.0, DType.BF16, 0x8000),
        (65519.99, DType.FP16, 0x7BFF),
        (-INF, DType.FP16, 0xFC00),
        (0.1, DType.FP64, 0x3FB999999999999A),
    ],
)
def test_rounded_once(value, dtype, bits):
    """A number is rounded once, to nearest even, whatever type it goes to."""
    assert hex(bits) == hex(code(value, dtype))


@pytest.mark.parametrize(("dtype", "kind"), [(DType.FP16, "e"), (DType.FP32, "f")])
def test_as_python_rounds(dtype, kind):
    """Python's own packing, which rounds once too, gives the same bits."""
    chance = np.random.default_rng(0)
    values = chance.standard_normal(400) * 2.0 ** chance.integers(-30, 15, 400)
    expected = [struct.pack(f"<{kind}", value) for value in values]
    assert expected == [code(v, dtype).to_bytes(dtype.bits // 8, "little") for v in values]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(65520.0, DType.FP16), (3.4e38, DType.BF16), (-1e39, DType.FP32), (1e308, DType.BF16)],
)
def test_too_large(value, dtype):
    """A number that would become infinite is refused by the parameter's name."""
    with pytest.raises(ProblemError) as error:
        rounded(value, dtype, "eps")
    assert f"{value:g} does not fit in {dtype.label}" == error.value.what
    assert error.value.where == "parameter `eps`"


@pytest.mark.parametrize("dtype", REALS)
def test_rounded_is_what_the_type_holds(dtype):
    """What a plan says is the number that the kernel gets; infinities pass."""
    assert rounded(0.1, dtype, "eps") == float(np.float64(0.1).astype(dtype.numpy))
    assert rounded(-INF, dtype, "eps") == -INF
