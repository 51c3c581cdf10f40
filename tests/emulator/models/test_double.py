"""Products of doubles."""

import numpy as np

from kernelpack.emulator.models import double


def test_each_step_is_rounded():
    """1 + 2^-53 is 1, twice; the sum at once is more."""
    tiny = 2.0**-53
    a, b = np.array([[1.0, tiny, tiny]]), np.ones((1, 3))
    assert double.product(a, b, np.zeros((1, 1)), exact=True)[0, 0] == 1.0
    assert (
        double.multiply_add(np.array([tiny]), np.array([2.0]), np.array([1.0]))[0] == 1 + 2 * tiny
    )


def test_a_product_is_not_rounded_before_it_is_added():
    """As with a fused multiply-add."""
    x = 1 + 2.0**-30
    found = double.product(
        np.array([[x]]), np.array([[x]]), np.array([[-(1 + 2.0**-29)]]), exact=True
    )
    assert found[0, 0] == 2.0**-60


def test_what_is_no_number_stays_none():
    """And what is beyond the range is infinite."""
    a = np.array([[np.nan], [np.inf], [1e308]])
    found = double.product(a, np.array([[10.0]]), np.zeros((3, 1)), exact=True)[:, 0]
    assert np.isnan(found[0])
    assert found[1:].tolist() == [np.inf, np.inf]
