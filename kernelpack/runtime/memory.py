"""Device memory: allocate, free, copy, fill. For outputs an op owns, for tests and benchmarks."""

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import CaptureError, DeviceMemoryError, DriverError, ForkError
from kernelpack.runtime.driver import CAPTURE_ERRORS, OUT_OF_MEMORY, Driver


class Memory:
    """A block of device memory, freed when the last reference to it goes.

    Attributes:
        address: its device address; aligned to 256 bytes.
        size_bytes: how many bytes it holds; may be 0, then there is no address.
        device: the device it lies on.

    """

    def __init__(self, driver: Driver, size_bytes: int, device: int) -> None:
        self._driver = driver
        self.address, self.size_bytes, self.device = 0, size_bytes, device
        if size_bytes:
            self.address = _allocate(driver, size_bytes, device)

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            address, self.address = self.address, 0
            _free(self._driver, address, self.device)

    def write(self, array: NDArray[np.generic], offset_bytes: int = 0) -> None:
        """Copy a host array in; returns when the copy is done."""
        data = np.ascontiguousarray(array)
        if data.nbytes:
            self._call("cuMemcpyHtoD", self.address + offset_bytes, data.ctypes.data, data.nbytes)

    def read(self, array: NDArray[np.generic], offset_bytes: int = 0) -> None:
        """Fill a contiguous host array; waits for the legacy default stream."""
        read(self._driver, self.address + offset_bytes, array, self.device)

    def fill(self, byte: int) -> None:
        """Set every byte."""
        if self.size_bytes:
            self._call("cuMemsetD8", self.address, byte, self.size_bytes)

    def _call(self, name: str, *arguments: object) -> None:
        with self._driver.current(self.device):
            self._driver.call(name, *arguments)


def read(driver: Driver, address: int, array: NDArray[np.generic], device: int) -> None:
    """Fill a contiguous host array from device memory; waits for the legacy default stream."""
    assert array.flags.c_contiguous, "a copy fills a contiguous array"
    if array.nbytes:
        with driver.current(device):
            driver.call("cuMemcpyDtoH", array.ctypes.data, address, array.nbytes)


def clear(driver: Driver, addresses: range, device: int, stream: int) -> None:
    """Let a stream write zeros to some addresses; a capture records it."""
    with driver.current(device):
        driver.call("cuMemsetD8Async", addresses.start, 0, len(addresses), stream)


def copy(driver: Driver, target: int, source: int, size_bytes: int, stream: int) -> None:
    """Let a stream copy device memory; the stream's device is current."""
    driver.call("cuMemcpyDtoDAsync", target, source, size_bytes, stream)


def _allocate(driver: Driver, size_bytes: int, device: int) -> int:
    with driver.current(device):
        code, address = driver.attempt("cuMemAlloc", size_bytes)
    if code in CAPTURE_ERRORS:
        raise CaptureError(
            "a stream is being captured, and a capture forbids allocating memory",
            where="cuMemAlloc",
            hint="give the outputs (`out=`), and the workspace of an op that has one",
        )
    if code == OUT_OF_MEMORY:
        error, hint = driver.error("cuMemAlloc", code), f"{size_bytes} bytes were asked for"
        raise DeviceMemoryError(error.what, where=error.where, hint=hint)
    if code:
        raise driver.error("cuMemAlloc", code)
    return int(address)


def _free(driver: Driver, address: int, device: int) -> None:
    """Free memory; waits for the work that uses it.

    A capture that runs on this thread is not disturbed: freeing is allowed in the relaxed mode.
    Nothing is raised, because a destructor calls this. The driver may have gone before us, a fork
    may have made the memory the parent's, and after a kernel's fault no memory can be freed: the
    call that met the fault reports it.
    """
    with suppress(DriverError, ForkError), driver.current(device), driver.relaxed():
        driver.call("cuMemFree", address)
