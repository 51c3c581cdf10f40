"""Arrays whose rows may lie apart, as memory and steps."""

import numpy as np
import pytest

from kernelpack.errors import ProblemError
from kernelpack.ops.arrays import host_view
from kernelpack.ops.spread import spread

X = np.zeros((4, 6, 8), np.int32)


@pytest.mark.parametrize(
    ("array", "reach", "steps"),
    [
        (X, 192, (48, 8, 1)),
        (X[:, :2, :5], 161 - 4, (48, 8, 1)),
        (X[:1, :, :5], 45, (48, 8, 1)),  # one step that nothing takes
        (X[:0], 0, (48, 8, 1)),  # numpy's strides are 0 here
        (np.zeros((0, 5), np.int32), 0, (5, 1)),
        (np.zeros((5, 0), np.int32), 0, (0, 1)),
    ],
)
def test_memory_and_steps(array, reach, steps):
    """From the first element to the last; without elements, the steps of an array without gaps."""
    found = spread(host_view(array, "x"), "x", "kernel")
    assert (found.shape, found.sides, found.steps) == ((reach,), array.shape, steps)


@pytest.mark.parametrize("array", [X[..., ::2], X[::-1]])
def test_refused(array):
    """Elements of a row must be adjacent, and rows in rising order."""
    with pytest.raises(ProblemError, match="`x` must have adjacent elements in its last dimension"):
        spread(host_view(array, "x"), "x", "kernel")
