"""Decoding and rounding of every float format, against ml_dtypes and numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import LAYOUTS, Rounding, decode, encode

NARROW = [DType.E4M3, DType.E5M2, DType.E2M3, DType.E3M2, DType.E2M1]
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


def spread(count=4096, seed=7):
    """Numbers over the whole range of float32, with every narrow midpoint region well hit."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(count) * np.exp2(rng.integers(-40, 40, count))).astype(np.float32)


@pytest.mark.parametrize("dtype", NARROW)
def test_every_code_returns_to_itself(dtype):
    """encode(decode(code)) is the code, for each code that is a finite number."""
    codes = np.arange(1 << dtype.bits)
    values = decode(dtype, codes)
    finite = np.isfinite(values)
    assert np.array_equal(codes[finite], encode(dtype, values)[finite])


@pytest.mark.parametrize("dtype", [DType.FP16, DType.BF16])
def test_every_half_code_returns_to_itself(dtype):
    """All finite 16-bit codes survive decode and encode."""
    codes = np.arange(1 << 16)
    values = decode(dtype, codes)
    finite = np.isfinite(values)
    assert np.array_equal(codes[finite], encode(dtype, values)[finite])


@pytest.mark.parametrize("dtype", [*NARROW, DType.BF16])
def test_nearest_even_is_what_ml_dtypes_rounds_to(dtype):
    """Inside the range, .rn is the rounding of ml_dtypes."""
    values = spread()
    values = values[np.abs(values) <= decode(dtype, LAYOUTS[dtype].largest)]
    expected = values.astype(dtype.numpy).view(f"u{dtype.numpy.itemsize}")
    assert np.array_equal(expected, encode(dtype, values))


@pytest.mark.parametrize("dtype", [DType.E4M3, DType.E5M2, DType.FP16, DType.BF16])
def test_single_precision_is_rounded_as_double(dtype):
    """Numbers of float32 go another way than those of float64, to the same codes."""
    words = np.random.default_rng(3).integers(0, 1 << 32, 1 << 18).astype(np.uint32)
    words[::2] &= np.uint32(0xFFFF_8000)  # ties
    words[1::4] &= np.uint32(0x80FF_FFFF)
    words[1::4] |= np.uint32(0x3F00_0000)  # numbers near one
    values = words.view(np.float32)
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        doubles = values.astype(np.float64)
    expected = encode(dtype, doubles, satfinite=True)
    assert np.array_equal(expected, encode(dtype, values, satfinite=True))


def test_nearest_even_to_half_is_numpy():
    """.rn to fp16, overflow to infinity included, is numpy's rounding."""
    values = spread()
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16).view(np.uint16)
    assert np.array_equal(expected, encode(DType.FP16, values))


@pytest.mark.parametrize("rounding", [Rounding.RM, Rounding.RP, Rounding.RZ])
def test_directed_roundings_bracket_the_value(rounding):
    """The result lies on the side that the rounding names."""
    values = spread()
    rounded = decode(DType.BF16, encode(DType.BF16, values, rounding))
    side = {
        Rounding.RM: rounded <= values,
        Rounding.RP: rounded >= values,
        Rounding.RZ: np.abs(rounded) <= np.abs(values),
    }
    assert side[rounding].all()


@given(FINITE)
def test_down_and_up_are_at_most_one_step_apart(value):
    """.rm and .rp give neighbouring numbers, or the number itself."""
    down = decode(DType.E5M2, encode(DType.E5M2, value, Rounding.RM, satfinite=True))
    up = decode(DType.E5M2, encode(DType.E5M2, value, Rounding.RP, satfinite=True))
    numbers = np.unique(decode(DType.E5M2, np.arange(0x7C)))
    numbers = np.unique(np.concatenate([-numbers, numbers]))
    assert np.searchsorted(numbers, up) - np.searchsorted(numbers, down) <= 1


@pytest.mark.parametrize(
    ("dtype", "value", "rounding", "expected"),
    [
        (DType.E4M3, 449.0, Rounding.RN, 0x7E),
        (DType.E4M3, -1e9, Rounding.RN, 0xFE),
        (DType.E5M2, np.inf, Rounding.RN, 0x7B),
        (DType.E2M1, 100.0, Rounding.RN, 0x7),
        (DType.E2M1, -np.inf, Rounding.RN, 0xF),
        (DType.E2M1, np.nan, Rounding.RN, 0x7),
        (DType.E3M2, np.nan, Rounding.RN, 0x1F),
        (DType.E4M3, np.nan, Rounding.RN, 0x7F),
        (DType.FP16, 70000.0, Rounding.RN, 0x7BFF),
        (DType.BF16, np.inf, Rounding.RZ, 0x7F7F),
        (DType.TF32, np.inf, Rounding.RNA, 0x7F7F_E000),
    ],
)
def test_satfinite(dtype, value, rounding, expected):
    """satfinite gives the largest number, with its sign; NaN stays NaN where one exists."""
    assert expected == encode(dtype, value, rounding, satfinite=True)


@pytest.mark.parametrize(
    ("dtype", "value", "rounding", "expected"),
    [
        (DType.FP16, 1e6, Rounding.RZ, 0x7BFF),
        (DType.FP16, 1e6, Rounding.RM, 0x7BFF),
        (DType.FP16, -1e6, Rounding.RM, 0xFC00),
        (DType.FP16, -1e6, Rounding.RP, 0xFBFF),
        (DType.FP16, np.inf, Rounding.RZ, 0x7C00),
        (DType.BF16, np.nan, Rounding.RN, 0x7FFF),
        (DType.FP32, np.nan, Rounding.RN, 0x7FFF_FFFF),
        (DType.FP32, 1e300, Rounding.RN, 0x7F80_0000),
    ],
)
def test_overflow_without_satfinite(dtype, value, rounding, expected):
    """A directed rounding stops at the largest number on its side; the rest is infinity."""
    assert expected == encode(dtype, value, rounding)


@pytest.mark.parametrize(("value", "expected"), [(-3.0, 0), (-0.0, 0), (3.0, 0x5), (-np.inf, 0)])
def test_relu(value, expected):
    """relu makes every negative number, and -0, a plain zero."""
    assert expected == encode(DType.E2M1, value, satfinite=True, relu=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0x3F80_1000, 0x3F80_2000), (0x3F80_0FFF, 0x3F80_0000), (0xBF80_1000, 0xBF80_2000)],
)
def test_tf32_ties_away(value, expected):
    """.rna rounds a tie away from zero, keeping 10 mantissa bits in a 32-bit container."""
    assert expected == encode(DType.TF32, decode(DType.FP32, value), Rounding.RNA)


@pytest.mark.parametrize(("random", "expected"), [(0.0, 1.0), (0.74, 1.0), (0.75, 1.5)])
def test_stochastic_rounding_carries(random, expected):
    """1.125 is a quarter step above 1 in e2m1: it rounds up where the number reaches 3/4."""
    code = encode(DType.E2M1, 1.125, Rounding.RS, satfinite=True, random=random)
    assert expected == decode(DType.E2M1, code)


@pytest.mark.parametrize(
    ("value", "rounding", "satfinite", "expected"),
    [
        (1.0, Rounding.RZ, False, 127),
        (1.5, Rounding.RZ, False, 127),
        (1.5, Rounding.RP, False, 128),
        (-1.5, Rounding.RP, False, 128),
        (0.0, Rounding.RP, False, 0),
        (2.0**-140, Rounding.RP, False, 0),
        (1.5 * 2.0**-127, Rounding.RP, False, 1),
        (3e38, Rounding.RP, False, 255),
        (3e38, Rounding.RP, True, 254),
        (np.inf, Rounding.RZ, True, 254),
        (np.inf, Rounding.RZ, False, 255),
        (np.nan, Rounding.RZ, True, 255),
    ],
)
def test_power_of_two_scale(value, rounding, satfinite, expected):
    """ue8m0 keeps the exponent of the magnitude, rounded toward zero or up."""
    assert expected == encode(DType.UE8M0, value, rounding, satfinite=satfinite)


def test_every_ue8m0_code():
    """Code c is 2^(c-127); 255 is NaN."""
    values = decode(DType.UE8M0, np.arange(256))
    expected = np.exp2(np.arange(255) - 127.0)
    assert np.array_equal(expected, values[:255].astype(np.float64))
    assert np.isnan(values[255])


def test_ue4m3_ignores_the_top_bit():
    """ue4m3 is e4m3 without sign; its eighth bit is padding."""
    assert decode(DType.UE4M3, 0xB8) == decode(DType.E4M3, 0x38) == 1.0


def test_ue4m3_rounds_like_e4m3():
    """A scale of 1.06 is 1.0 in ue4m3."""
    assert encode(DType.UE4M3, 1.06, satfinite=True) == 0x38


def test_e2m1_values():
    """The sixteen numbers of FP4."""
    half = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert decode(DType.E2M1, np.arange(16)).tolist() == [*half, *(-x for x in half)]


def test_fp64_is_its_own_bits():
    """fp64 codes are the bits of a float64."""
    assert decode(DType.FP64, encode(DType.FP64, -0.1)) == -0.1


def test_double_to_half_rounds_once():
    """A float64 just above a tie rounds up, though float32 in between would make it a tie."""
    assert encode(DType.FP16, 1 + 2.0**-11 + 2.0**-40) == 0x3C01


def test_integer_is_no_narrow_float():
    """Decoding an integer type as a float is refused."""
    with pytest.raises(UnsupportedError, match="u8 is not"):
        decode(DType.U8, 3)


def test_integer_is_no_target():
    """Rounding to an integer type is not this module's."""
    with pytest.raises(UnsupportedError, match="i8 is not"):
        encode(DType.I8, 3.0)


def test_ue8m0_has_two_roundings():
    """PTX knows .rz and .rp for ue8m0."""
    with pytest.raises(UnsupportedError, match=r"\.rz or \.rp"):
        encode(DType.UE8M0, 3.0, Rounding.RN)
