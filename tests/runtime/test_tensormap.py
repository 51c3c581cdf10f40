"""Tensor maps are encoded once for each value."""

from dataclasses import replace

import pytest

from kernelpack.errors import DriverError
from kernelpack.runtime.driver import Driver
from kernelpack.runtime.tensormap import encode, encoder
from kernelpack.spec.tensormap import Element, Promotion, Swizzle, TensorMap
from tests.fakes.driver import FakeCuda

MAP = TensorMap(
    name="b_map",
    element=Element.BF16,
    address=0x10000,
    dims=(4096, 48, 4),
    strides_bytes=(8192, 393_216),
    box=(64, 48, 1),
    element_strides=(1, 1, 1),
    swizzle=Swizzle.B128,
    promotion=Promotion.L2_256B,
)


def test_bytes():
    """The driver gets every field in its order: type, rank, address, …, swizzle, promotion."""
    words = "[9, 3, 65536, [4096, 48, 4], [8192, 393216], [64, 48, 1], [1, 1, 1], 0, 3, 3, 0]"
    assert encode(Driver(FakeCuda()), MAP, 0).rstrip(b"\0") == words.encode()


def test_size():
    """A descriptor is 128 bytes."""
    assert len(encode(Driver(FakeCuda()), MAP, 0)) == 128


def test_over_nothing():
    """The map of an absent argument is zeros; the driver, which encodes none such, is not asked."""
    cuda = FakeCuda()
    assert encode(Driver(cuda), replace(MAP, address=0), 0) == bytes(128)
    assert cuda.count("cuTensorMapEncodeTiled") == 0


@pytest.mark.parametrize(("other", "asked"), [(MAP, 1), (replace(MAP, address=0x20000), 2)])
def test_kept_by_value(other, asked):
    """Equal maps are encoded once, different ones each."""
    cuda = FakeCuda()
    encoded = encoder(Driver(cuda), 0)
    assert (encoded(MAP) == encoded(other)) is (asked == 1)
    assert cuda.count("cuTensorMapEncodeTiled") == asked


def test_driver_refuses():
    """What the driver refuses after our own check is an error that names the call."""
    driver = Driver(FakeCuda(answers={"cuTensorMapEncodeTiled": 1}))
    with pytest.raises(DriverError, match="cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE"):
        encode(driver, MAP, 0)
