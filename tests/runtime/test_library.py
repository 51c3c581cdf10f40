"""Machine code becomes a function: one load, attributes once a device, refusals by name."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from kernelpack.errors import DriverError, SelectionError
from kernelpack.runtime.driver import Driver
from kernelpack.runtime.library import Functions, Image, attributes
from tests.fakes.driver import FakeCuda, FakeDevice
from tests.fakes.variants import variant

VARIANT = variant()
IMAGE = Image(data=b"cubin")
THREADS = 8


def image() -> Image:
    return IMAGE


def test_function():
    """A function knows its variant and its device."""
    function = Functions(Driver(FakeCuda())).make(VARIANT, image, 0)
    assert (function.variant, function.device.ordinal) == (VARIANT, 0)


def test_find():
    """A function is found once it has been made, on its device only."""
    functions = Functions(Driver(FakeCuda(devices=(FakeDevice(),) * 2)))
    made = functions.make(VARIANT, image, 1)
    assert [functions.find(VARIANT.id, ordinal) for ordinal in (0, 1)] == [None, made]


def test_made_twice():
    """The second time nothing is loaded or set."""
    cuda = FakeCuda()
    functions = Functions(Driver(cuda))
    assert functions.make(VARIANT, image, 0) is functions.make(VARIANT, image, 0)
    assert (cuda.count("cuLibraryLoadData"), cuda.count("cuKernelSetAttribute")) == (1, 1)


def test_first_use_by_many_threads():
    """Two devices, eight threads each, at once: one load, attributes once a device."""
    cuda = FakeCuda(devices=(FakeDevice(), FakeDevice()))
    functions, gate = Functions(Driver(cuda)), Barrier(2 * THREADS)

    def use(number: int) -> int:
        gate.wait()
        return functions.make(VARIANT, image, number % 2).device.ordinal

    with ThreadPoolExecutor(2 * THREADS) as pool:
        ordinals = list(pool.map(use, range(2 * THREADS)))
    assert ordinals == [0, 1] * THREADS
    assert (cuda.count("cuLibraryLoadData"), cuda.count("cuKernelSetAttribute")) == (1, 2)


def test_no_kernel_in_the_machine_code():
    """Code for another device loads and then lacks the kernel: refused, unloaded, named."""
    cuda = FakeCuda(answers={"cuLibraryGetKernel": 500})
    with pytest.raises(SelectionError, match=r"driver of CUDA 13.0 finds no kernel .* device 0"):
        Functions(Driver(cuda)).make(VARIANT, image, 0)
    assert cuda.images == {}


@pytest.mark.parametrize(
    ("call", "code", "name"),
    [
        ("cuLibraryLoadData", 209, "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ("cuLibraryGetKernel", 201, "CUDA_ERROR_INVALID_CONTEXT"),
        ("cuKernelGetFunction", 2, "CUDA_ERROR_OUT_OF_MEMORY"),
        ("cuKernelSetAttribute", 1, "CUDA_ERROR_INVALID_VALUE"),
    ],
)
def test_other_errors(call, code, name):
    """Any other error names the call, and the next use tries again."""
    cuda = FakeCuda(answers={call: code})
    functions = Functions(Driver(cuda))
    with pytest.raises(DriverError, match=f"{call}: {name}"):
        functions.make(VARIANT, image, 0)
    cuda.answers.clear()
    assert functions.make(VARIANT, image, 0).variant == VARIANT


def test_unload():
    """Unloading takes every library out of the driver and forgets the functions."""
    cuda = FakeCuda()
    functions = Functions(Driver(cuda))
    functions.make(VARIANT, image, 0)
    functions.unload()
    assert (cuda.images, functions.find(VARIANT.id, 0)) == ({}, None)


def test_unload_after_the_driver_has_gone():
    """A driver that has shut down is not an error: it unloaded everything."""
    cuda = FakeCuda()
    functions = Functions(Driver(cuda))
    functions.make(VARIANT, image, 0)
    cuda.answers["cuLibraryUnload"] = 4
    functions.unload()
    assert functions.find(VARIANT.id, 0) is None


def test_unload_error():
    """Any other answer to unloading is an error."""
    cuda = FakeCuda()
    functions = Functions(Driver(cuda))
    functions.make(VARIANT, image, 0)
    cuda.answers["cuLibraryUnload"] = 400
    with pytest.raises(DriverError, match="cuLibraryUnload: CUDA_ERROR_INVALID_HANDLE"):
        functions.unload()


@pytest.mark.parametrize(
    ("cluster", "shared", "static", "expected"),
    [
        ("2", "100_000", 0, {8: 100_000}),
        ("2", "0", 0, {}),
        ("16", "0", 0, {14: 1}),
        ("n_active", "0", 0, {14: 1}),
        ("2", "1024 * n", 1000, {8: 231_448}),
    ],
)
def test_attributes(cluster, shared, static, expected):
    """What is known is set; what depends on the problem is allowed the most the target has."""
    built = variant(cluster=cluster, shared_bytes=shared)
    assert expected == attributes(built, Image(data=b"", shared_bytes=static))
