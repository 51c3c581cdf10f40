"""What an op asks of its arrays, and what it says of one that is not so."""

import numpy as np
import pytest

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.checks import (
    check_array,
    check_contiguous,
    check_devices,
    check_out,
    check_writable,
    integer,
    number,
    require,
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": (4,)}, r"`b` must have the shape \[n, k\], not \[4\]"),
        ({"dtype": DType.I32}, "`b` must be bf16 or fp16, not i32"),
    ],
)
def test_check_array(changes, message):
    """Rank and type are checked, with what was found and what would be right."""
    known = {"pointer": 0, "shape": (2, 4), "dtype": DType.BF16}
    array = DeviceArray(**(known | changes))
    with pytest.raises(ProblemError, match=message):
        check_array(array, "b", "n k", (DType.BF16, DType.FP16), "kernel")


def on(device):
    return DeviceArray(pointer=0, shape=(1,), dtype=DType.U8, device=device)


def test_check_devices():
    """Arrays on different devices are refused with both names and devices."""
    with pytest.raises(ProblemError, match="`b` is on device 1, `a` on device 0"):
        check_devices({"a": on(0), "x": on(0), "b": on(1)}, "kernel")


@pytest.mark.parametrize(("devices", "expected"), [((1, 1), 1), ((None, 1), 1), ((None, None), 0)])
def test_one_device(devices, expected):
    """The one device that arrays lie on; without any memory it is the first."""
    arrays = {str(i): on(device) for i, device in enumerate(devices)}
    assert expected == check_devices(arrays, "kernel")


def test_check_contiguous():
    """An array with gaps, or column by column, is refused with its shape and strides."""
    array = DeviceArray(pointer=0, shape=(2, 4), dtype=DType.U8, strides=(1, 2))
    message = r"`b` must be row-major without gaps; shape \[2, 4\] has strides \[1, 2\]"
    with pytest.raises(ProblemError, match=message):
        check_contiguous({"b": array}, "kernel")


OUT = DeviceArray(pointer=0x100, shape=(2, 4), dtype=DType.FP32)


def test_check_out():
    """An output of the problem's shape and type is taken."""
    assert check_out(OUT, "out", (2, 4), DType.FP32, "kernel") is None


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((2, 5), DType.FP32, r"`out` must have the shape \[2, 5\], not \[2, 4\]"),
        ((2, 4), DType.FP16, "`out` must be fp16 as `out_dtype` says, not fp32"),
    ],
)
def test_check_out_refuses(shape, dtype, message):
    """An output of another problem is refused."""
    with pytest.raises(ProblemError, match=message):
        check_out(OUT, "out", shape, dtype, "kernel")


def floats(pointer, count):
    return {"a": DeviceArray(pointer=pointer, shape=(count,), dtype=DType.FP32)}


@pytest.mark.parametrize(("pointer", "count"), [(0xF0, 5), (0x110, 1), (0x11C, 9)])
def test_overlap(pointer, count):
    """Two arrays that share a byte overlap."""
    with pytest.raises(ProblemError, match="`out` overlaps `a`"):
        check_writable(OUT, "out", floats(pointer, count), "kernel")


@pytest.mark.parametrize(("pointer", "count"), [(0xF0, 4), (0x120, 4), (0x110, 0)])
def test_apart(pointer, count):
    """Neighbours do not overlap, and an array without elements overlaps nothing."""
    assert check_writable(OUT, "out", floats(pointer, count), "kernel") is None


def test_require():
    """A broken rule is reported with the kernel's name."""
    require(True, "`m` must be 3", "kernel")
    with pytest.raises(ProblemError, match="kernel: `m` must be 3, not 4"):
        require(False, "`m` must be 3, not 4", "kernel")


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_integer(value):
    """Integers of Python and of numpy are integers."""
    assert integer(value, "m") == 3


@pytest.mark.parametrize("value", ["3", 3.0, True, None, np.float32(3)])
def test_no_integer(value):
    """Nothing else is."""
    with pytest.raises(ProblemError, match="`m` must be an integer, not"):
        integer(value, "m")


@pytest.mark.parametrize("value", [3, 0.5, np.int64(3), np.float32(0.5), np.float16(0.5)])
def test_number(value):
    """Numbers of Python and of numpy, of any width, are numbers."""
    assert number(value, "scale") == float(value)


@pytest.mark.parametrize("value", ["3", True, None, 1j, np.complex64(1), np.bool_(True)])
def test_no_number(value):
    """Nothing else is."""
    with pytest.raises(ProblemError, match="`scale` must be a number, not"):
        number(value, "scale")


def test_a_number_that_no_float_holds():
    """An integer may be too large to be a float, and is named."""
    with pytest.raises(ProblemError, match="`scale` must be a number that a float holds"):
        number(10**400, "scale")
