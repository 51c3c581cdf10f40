"""What the oracle of a kernel of one's own imports: bounds, numbers, cases."""

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.oracle import every, exactly, normal, within


def test_within_is_met_by_rounding():
    """What is rounded once is within half an ulp."""
    values = np.random.default_rng(0).standard_normal(1000)
    found = within(values, "bf16", ulps=0.5).ratio(values.astype(DType.BF16.numpy))
    assert 0.9 < found.max() <= 1


def test_exactly():
    """Every other number is wrong."""
    assert exactly([1, 2]).ratio(np.array([1, 3])).tolist()[0] == 0
    assert exactly([1, 2]).ratio(np.array([1, 3])).max() > 1


def test_normal():
    """Numbers of a type, by its word in a manifest."""
    assert normal(np.random.default_rng(0), (2, 3), "bf16").dtype == DType.BF16.numpy


def test_every():
    """Every combination; one value alone."""
    assert every(n=(1, 2), dtype="bf16") == ({"n": 1, "dtype": "bf16"}, {"n": 2, "dtype": "bf16"})
