"""An element of an output beside the oracle's: its error in bounds."""

import numpy as np
import pytest

from kernelpack.emulator.machine.memory import POISON
from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import UNTOUCHED, Expected


@pytest.mark.parametrize(
    ("found", "value", "bound", "ratio"),
    [
        (1.5, 1.0, 0.5, 1.0),
        (3.0, 1.0, 0.5, 4.0),
        (0.0, 0.0, 0.0, 0.0),
        (np.nan, 1.0, 0.5, np.inf),
        (np.inf, 1.0, 0.5, np.inf),
        (np.inf, np.inf, 0.5, 0.0),
        (-np.inf, np.inf, 0.5, np.inf),
        (3e38, np.inf, 0.5, np.inf),
    ],
)
def test_ratio(found, value, bound, ratio):
    """The error over the bound; NaN is never right, an exact zero may have no bound."""
    expected = Expected(value=np.array([value]), bound=np.array([bound]))
    assert expected.ratio(np.array([found], np.float32)).tolist() == [ratio]


@pytest.mark.parametrize("dtype", [DType.BF16, DType.FP16, DType.FP32, DType.U8])
def test_untouched(dtype):
    """An element to be left is right as it was, and infinitely wrong with anything else."""
    expected = Expected(value=np.full(3, np.nan), bound=np.full(3, np.nan))
    raw = np.full((3, dtype.numpy.itemsize), UNTOUCHED, np.uint8)
    raw[1] = 0
    raw[2, -1] = 0x7F
    found = raw.view(dtype.numpy).reshape(3)
    assert expected.ratio(found).tolist() == [0.0, np.inf, np.inf]


def test_left_out():
    """An element never written that should have been is infinitely wrong."""
    expected = Expected(value=np.array([1.0]), bound=np.array([0.5]))
    assert expected.ratio(np.full(1, UNTOUCHED, np.uint8).repeat(4).view(np.float32)) == [np.inf]


def test_emulated_memory_is_untouched():
    """The emulator's fresh memory is what an untouched output is."""
    assert POISON == UNTOUCHED
