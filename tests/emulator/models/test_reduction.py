"""Reductions in memory, PTX ISA 9.1, 9.7.9.25.4.2."""

import ml_dtypes
import numpy as np
import pytest

from kernelpack.emulator.models.reduction import ELEMENTS, reduce
from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType
from kernelpack.spec.tensormap import Element


def run(operation, dtype, old, new):
    raw = [np.array([value], dtype.numpy).view(np.uint8) for value in (old, new)]
    return reduce(operation, dtype, *raw).view(dtype.numpy)[0]


@pytest.mark.parametrize(
    ("operation", "dtype", "old", "new", "expected"),
    [
        ("add", DType.U32, 0xFFFF_FFFF, 2, 1),
        ("add", DType.I32, -5, 3, -2),
        ("add", DType.FP32, 0.5, 0.25, 0.75),
        ("add", DType.FP64, 0.1, 0.2, 0.1 + 0.2),
        ("add", DType.FP16, 2048, 1, 2048),
        ("add", DType.FP16, 65504, 65504, np.inf),
        ("add", DType.BF16, 256, 1, 256),
        ("add", DType.BF16, 1, 2**-8, 1),
        ("min", DType.I32, -1, 1, -1),
        ("min", DType.U32, 0xFFFF_FFFF, 1, 1),
        ("max", DType.I64, -1, 1, 1),
        ("min", DType.FP16, np.nan, 1, 1),
        ("max", DType.BF16, 2, np.nan, 2),
        ("inc", DType.U32, 4, 5, 5),
        ("inc", DType.U32, 5, 5, 0),
        ("dec", DType.U32, 0, 5, 5),
        ("dec", DType.U32, 9, 5, 5),
        ("dec", DType.U32, 3, 5, 2),
        ("and", DType.U32, 6, 3, 2),
        ("or", DType.U64, 6, 3, 7),
        ("xor", DType.U32, 6, 3, 5),
    ],
)
def test_reduce(operation, dtype, old, new, expected):
    """What memory holds after the operation."""
    assert run(operation, dtype, old, new) == np.array(expected, dtype.numpy)


def test_bf16_sum_is_rounded_once():
    """bf16 sums agree with ml_dtypes."""
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 1000)).astype(ml_dtypes.bfloat16)
    total = reduce("add", DType.BF16, a.view(np.uint8), b.view(np.uint8))
    assert np.array_equal((a + b).view(np.uint8), total)


@pytest.mark.parametrize(
    ("operation", "dtype"), [("and", DType.FP32), ("inc", DType.I32), ("mul", DType.U32)]
)
def test_unknown_reduction(operation, dtype):
    """A reduction PTX does not have for a type is refused."""
    with pytest.raises(UnsupportedError, match=operation):
        run(operation, dtype, 0, 0)


def test_elements_have_number_types():
    """A tensor map's element says how it is reduced."""
    assert ELEMENTS[Element.I64] is DType.I64
