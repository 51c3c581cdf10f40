"""Tensor core arithmetic against a scalar model and against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpack.emulator.models.mma import Operands, Summation, exact, fast, integer
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import LAYOUTS, decode

FLOATS = [DType.FP16, DType.BF16, DType.E4M3, DType.E5M2, DType.E2M3, DType.E3M2, DType.E2M1]


def numbers(rng, dtype, shape):
    """Random finite numbers of a type; of bf16 those whose products fp32 can hold."""
    low, high = (0x2C00, 0x5000) if dtype is DType.BF16 else (0, LAYOUTS[dtype].largest)
    codes = rng.integers(low, high + 1, shape)
    return decode(dtype, codes) * rng.choice(np.float32([-1, 1]), shape)


def operands(dtype, shape=(3, 4, 16), seed=1, **rest):
    rng = np.random.default_rng(seed)
    m, n, k = shape
    a, b = numbers(rng, dtype, (m, k)), numbers(rng, dtype, (n, k))
    c = (rng.standard_normal((m, n)) * np.abs(a).max() * np.abs(b).max()).astype(np.float32)
    return Operands(**({"a": a, "b": b, "c": c, "a_type": dtype, "b_type": dtype} | rest))


def exponent(value, smallest):
    return max(int(np.frexp(value)[1]) - 1, smallest) if value else -(10**4)


def scalar(x, i, j, fraction_bits):
    """The fused sum of one element in exact fractions, written from the definition."""
    smallest = LAYOUTS[x.a_type].smallest_exponent
    # A product with a zero has no exponent: it does not take part in the maximum.
    terms = [
        (Fraction(float(p)) * Fraction(float(q)), exponent(p, smallest) + exponent(q, smallest))
        for p, q in zip(x.a[i], x.b[j], strict=True)
    ]
    c = float(x.c[i, j])
    terms.append((Fraction(c), exponent(c, -126)))
    unit = Fraction(2) ** (max(e for _, e in terms) - fraction_bits)
    return sum(int(value / unit) for value, _ in terms) * unit


def towards_zero(value):
    """The float32 next to a fraction, on the side of zero."""
    near = np.float32(float(value))
    beyond = abs(Fraction(float(near))) > abs(value)
    return np.nextafter(near, np.float32(0)) if beyond else near


@settings(max_examples=40, deadline=None)
@given(dtype=st.sampled_from(FLOATS), seed=st.integers(0, 10**6), bits=st.sampled_from([13, 25]))
def test_exact_is_the_definition(dtype, seed, bits):
    """Each element is the truncated sum, rounded toward zero."""
    x = operands(dtype, (2, 2, 16), seed)
    expected = [[towards_zero(scalar(x, i, j, bits)) for j in range(2)] for i in range(2)]
    assert np.array_equal(np.float32(expected), exact(x, Summation(fraction_bits=bits)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_is_near_fast(dtype):
    """The two differ by the bits that are cut, no more."""
    x = operands(dtype)
    bound = 32 * 2.0**-24 * (np.abs(x.a) @ np.abs(x.b).T + np.abs(x.c))
    assert (np.abs(exact(x, Summation()) - fast(x, Summation())) <= bound).all()


@pytest.mark.parametrize("multiply", [fast, exact])
def test_small_integers_are_exact(multiply):
    """Sums that fit have no rounding at all."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(-8, 9, (2, 5, 32)).astype(np.float32)
    c = rng.integers(-99, 100, (5, 5)).astype(np.float32)
    x = Operands(a=a, b=b, c=c, a_type=DType.E4M3, b_type=DType.E4M3)
    assert np.array_equal(a @ b.T + c, multiply(x, Summation()))


@pytest.mark.parametrize("multiply", [fast, exact])
def test_without_c(multiply):
    """C = None is zero."""
    x = operands(DType.BF16, c=None)
    zero = operands(DType.BF16, c=np.zeros((3, 4), np.float32))
    assert np.array_equal(multiply(zero, Summation()), multiply(x, Summation()))


def one(a, b, c, dtype=DType.BF16, **rest):
    """Operands of a single element of D."""
    return Operands(
        a=np.float32([a]),
        b=np.float32([b]),
        c=np.float32([[c]]),
        a_type=dtype,
        b_type=dtype,
        **rest,
    )


@pytest.mark.parametrize(
    ("a", "b", "c", "bits", "expected"),
    [
        ([1, 2.0**-13], [1, 2.0**-13], 0, 25, 1.0),
        ([1, 2.0**-12], [1, 2.0**-11], 0, 25, 1 + 2.0**-23),
        ([1, 2.0**-7], [1, 2.0**-7], 0, 13, 1.0),
        ([1, 2.0**-6], [1, 2.0**-7], 0, 13, 1 + 2.0**-13),
        ([2.0**-13, 2.0**-13], [2.0**-13, 2.0**-13], 1, 25, 1.0),
        ([1, 1], [1, -(2.0**-30)], 0, 25, 1.0),
        ([2.0**20, 1], [1, 2.0**-10], -(2.0**20), 25, 0.0),
    ],
)
def test_terms_below_the_grid_are_cut(a, b, c, bits, expected):
    """A term more than `fraction_bits` below the largest adds nothing, even to a cancelled sum."""
    assert exact(one(a, b, c), Summation(fraction_bits=bits)) == np.float32(expected)


def test_a_zero_does_not_move_the_grid():
    """A product of zero and a large number cuts nothing (measured on an H200)."""
    x = one([0, 2.0**-60, 2.0**-70], [2.0**60, 2.0**-60, 2.0**-70], 0)
    assert exact(x, Summation()) == np.float32(2.0**-120 + 2.0**-140)


def test_short_output():
    """fp8 on Hopper keeps 13 mantissa bits."""
    x = one([1 + 2.0**-7], [1 + 2.0**-7], 0)
    assert exact(x, Summation(output_bits=13)) == 1 + 2.0**-6
    assert exact(x, Summation()) == 1 + 2.0**-6 + 2.0**-14


@pytest.mark.parametrize("multiply", [fast, exact])
def test_half_output_is_nearest_even(multiply):
    """An fp16 D is rounded to nearest even, and overflows to infinity."""
    half = Summation(output=DType.FP16)
    assert multiply(one([2048, 1], [1, 1], 0), half) == 2048
    assert multiply(one([2048, 3], [1, 1], 0), half) == 2052
    assert multiply(one([60000], [2], 0), half) == np.inf


@pytest.mark.parametrize("multiply", [fast, exact])
@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        ([np.inf], [0], 0, np.nan),
        ([np.inf], [-1], 0, -np.inf),
        ([np.inf, 1], [1, 1], -np.inf, np.nan),
        ([1], [1], np.nan, np.nan),
        ([2.0**127], [2.0**127], 0, np.inf),
        ([-(2.0**127)], [2.0], 0, -np.inf),
    ],
)
def test_not_finite(multiply, a, b, c, expected):
    """Infinities and NaN follow IEEE; so does overflow."""
    assert np.array_equal(multiply(one(a, b, c), Summation()), [[expected]], equal_nan=True)


def test_nan_is_canonical():
    """Hardware's NaN is 0x7fffffff."""
    bits = exact(one([np.nan], [1], 0), Summation()).astype(np.float32).view(np.uint32)
    assert bits == 0x7FFF_FFFF


@pytest.mark.parametrize("multiply", [fast, exact])
def test_scales_of_blocks(multiply):
    """Each block of K has its own pair of scales."""
    scales = {"a_scales": np.float32([[2, 0.5]]), "b_scales": np.float32([[4, 1]])}
    x = one([1, 1, 1, 1], [1, 1, 1, 1], 0, DType.E4M3, **scales)
    assert multiply(x, Summation()) == 2 * 8 + 2 * 0.5


def test_groups_are_added_before_they_are_cut():
    """In FP4 kinds 16 products make one exact term, times both scales' significands."""
    fields = {
        "a_scales": np.float32([[1.125, 1]]),
        "b_scales": np.float32([[1.25, 1]]),
        "scale_type": DType.UE4M3,
    }
    x = one([6.0] * 16 + [0.5] * 16, [6.0] * 32, 0, DType.E2M1, **fields)
    expected = 16 * 36 * 1.125 * 1.25 + 16 * 3
    assert exact(x, Summation(fraction_bits=35, group=16)) == np.float32(expected)


@pytest.mark.parametrize(("saturate", "expected"), [(False, -(2**31)), (True, 2**31 - 1)])
def test_integer_overflow(saturate, expected):
    """Integers wrap, or saturate when asked."""
    a = b = np.int8([[1]])
    c = np.int32([[2**31 - 1]])
    assert integer(a, b, c, saturate=saturate) == expected


def test_integer_products():
    """Signed times unsigned."""
    assert integer(np.int8([[-128, 1]]), np.uint8([[255, 2]]), None) == -128 * 255 + 2
