"""Numbers of a call reach a kernel that the compiler made, on the emulator."""

import numpy as np
import pytest

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.ops import EmulatedLibrary
from kernelpack.spec.number import REALS
from tests.kernels import values

ABIS = range(1, 2)
SIZES = {"m": 3, "k": 20, "dtype": int(DType.FP32)}


@pytest.fixture(scope="module", params=["sm_100a", "sm_90a"])
def library(request, tmp_path_factory):
    """The kernel of a target."""
    root = tmp_path_factory.mktemp(request.param)
    return EmulatedLibrary(values.bundle(root, request.param))


def run(library, x, **given):
    return library.run("values", {**SIZES, **given}, {"x": x}, ABIS)


@pytest.mark.parametrize("eps", [1e-6, 0.1, -3, -np.inf, 1 + 2**-8 + 2**-40])
def test_each_type_is_rounded_once(library, eps):
    """The kernel reads what a type makes of the number, instead of its parameter."""
    found = run(library, np.ones((3, 20), np.float32), eps=eps)
    expected = [float(np.float64(eps).astype(dtype.numpy)) for dtype in REALS]
    if eps == 1 + 2**-8 + 2**-40:
        expected[REALS.index(DType.BF16)] = 1 + 2**-7  # ml_dtypes rounds to fp32 first
    np.testing.assert_array_equal(found["taken"], expected)


@pytest.mark.parametrize(("given", "alpha"), [({}, 2), ({"alpha": -0.5}, -0.5)])
def test_defaults(library, given, alpha):
    """A number that is left out is its default."""
    x = np.arange(60, dtype=np.float32).reshape(3, 20)
    found = run(library, x, eps=0, **given)
    np.testing.assert_array_equal(found["y"], alpha * x)


def test_a_type_of_an_axis(library):
    """A number is rounded to the type that an axis names."""
    x = np.ones((3, 20), DType.BF16.numpy)
    found = run(library, x, eps=0, alpha=0.1, dtype=int(DType.BF16))
    assert {float(DType.BF16.numpy.type(0.1))} == set(found["y"].astype(float).ravel())


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({}, "`eps` is not given: what is written in four types"),
        ({"eps": 1e6}, "parameter `in_half`: 1e+06 does not fit in fp16"),
        ({"eps": 1e-6, "esp": 1}, "no size `esp`"),
        ({"eps": 1e-6, "m": 2.7}, "`m`: must be an integer, not 2.7"),
    ],
)
def test_refused(library, given, what):
    """What is missing, too large, unknown or cut is refused by name."""
    with pytest.raises(ProblemError) as error:
        run(library, np.ones((3, 20), np.float32), **given)
    assert what in str(error.value)
