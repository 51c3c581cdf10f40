"""Reductions in memory, PTX ISA 9.1, 9.7.9.25.4.2."""

import ml_dtypes
import numpy as np
import pytest

from kernelpack.emulator.models.reduction import ELEMENTS, reduce
from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType
from kernelpack.spec.tensormap import Element


def run(operation, element, old, new):
    dtype = ELEMENTS[element].numpy
    raw = [np.array([value], dtype).view(np.uint8) for value in (old, new)]
    return reduce(operation, element, *raw).view(dtype)[0]


@pytest.mark.parametrize(
    ("operation", "element", "old", "new", "expected"),
    [
        ("add", Element.U32, 0xFFFF_FFFF, 2, 1),
        ("add", Element.I32, -5, 3, -2),
        ("add", Element.FP32, 0.5, 0.25, 0.75),
        ("add", Element.FP64, 0.1, 0.2, 0.1 + 0.2),
        ("add", Element.FP16, 2048, 1, 2048),
        ("add", Element.FP16, 65504, 65504, np.inf),
        ("add", Element.BF16, 256, 1, 256),
        ("add", Element.BF16, 1, 2**-8, 1),
        ("min", Element.I32, -1, 1, -1),
        ("min", Element.U32, 0xFFFF_FFFF, 1, 1),
        ("max", Element.I64, -1, 1, 1),
        ("min", Element.FP16, np.nan, 1, 1),
        ("max", Element.BF16, 2, np.nan, 2),
        ("inc", Element.U32, 4, 5, 5),
        ("inc", Element.U32, 5, 5, 0),
        ("dec", Element.U32, 0, 5, 5),
        ("dec", Element.U32, 9, 5, 5),
        ("dec", Element.U32, 3, 5, 2),
        ("and", Element.U32, 6, 3, 2),
        ("or", Element.U64, 6, 3, 7),
        ("xor", Element.U32, 6, 3, 5),
    ],
)
def test_reduce(operation, element, old, new, expected):
    """What memory holds after the operation."""
    assert run(operation, element, old, new) == np.array(expected, ELEMENTS[element].numpy)


@pytest.mark.parametrize(
    ("operation", "old", "new", "negative"),
    [
        ("min", -0.0, 0.0, True),
        ("min", 0.0, -0.0, True),
        ("max", -0.0, 0.0, False),
        ("max", 0.0, -0.0, False),
    ],
)
def test_zeros_are_ordered(operation, old, new, negative):
    """-0 is less than +0, as measured on an H200."""
    assert np.signbit(run(operation, Element.BF16, old, new)) == negative


def test_bf16_sum_is_rounded_once():
    """bf16 sums agree with ml_dtypes."""
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 1000)).astype(ml_dtypes.bfloat16)
    total = reduce("add", Element.BF16, a.view(np.uint8), b.view(np.uint8))
    assert np.array_equal((a + b).view(np.uint8), total)


@pytest.mark.parametrize(
    ("operation", "element"),
    [
        ("and", Element.FP32),
        ("inc", Element.I32),
        ("mul", Element.U32),
        ("add", Element.U8),
        ("add", Element.TF32),
    ],
)
def test_unknown_reduction(operation, element):
    """A reduction PTX does not have for an element is refused."""
    with pytest.raises(UnsupportedError, match=f"{operation} of {element.name}"):
        reduce(operation, element, np.zeros(8, np.uint8), np.zeros(8, np.uint8))


def test_elements_have_number_types():
    """A tensor map's element says how it is reduced."""
    assert ELEMENTS[Element.I64] is DType.I64
