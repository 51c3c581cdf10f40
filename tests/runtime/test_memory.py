"""Device memory: copies, fills, and an end that disturbs nobody."""

import numpy as np
import pytest

from kernelpack.errors import CaptureError, DeviceMemoryError
from kernelpack.runtime.driver import Driver
from kernelpack.runtime.memory import Memory
from tests.fakes.driver import FakeCuda, FakeDevice

DATA = np.arange(8, dtype=np.int32)


def test_write_then_read():
    """What was written is read back, also at an offset."""
    memory = Memory(Driver(FakeCuda()), 64, 0)
    memory.write(DATA, 16)
    found = np.empty_like(DATA)
    memory.read(found, 16)
    assert found.tolist() == DATA.tolist()


def test_fill():
    """Filling sets every byte."""
    memory = Memory(Driver(FakeCuda()), 32, 0)
    memory.fill(0xFF)
    found = np.empty_like(DATA)
    memory.read(found)
    assert found.tolist() == [-1] * 8


def test_no_bytes():
    """Memory of no bytes asks the driver for nothing and can be used."""
    cuda = FakeCuda()
    memory = Memory(Driver(cuda), 0, 0)
    memory.fill(1)
    memory.write(DATA[:0])
    memory.read(DATA[:0])
    del memory
    assert [name for name in cuda.calls if name.startswith("cuMem")] == []


def test_device():
    """Memory lies on the device asked for, whatever is current."""
    cuda = FakeCuda(devices=(FakeDevice(), FakeDevice()))
    memory = Memory(Driver(cuda), 64, 1)
    assert cuda.memory[memory.address][0] == 1


def test_freed_with_the_last_reference():
    """Memory is freed when nobody refers to it."""
    cuda = FakeCuda()
    memory = Memory(Driver(cuda), 64, 0)
    del memory
    assert cuda.memory == {}


def test_freed_inside_a_capture():
    """Freeing while the thread captures is done in the mode that a capture allows."""
    cuda = FakeCuda()
    memory = Memory(Driver(cuda), 64, 0)
    cuda.new_stream(capturing=True)
    del memory
    assert (cuda.memory, cuda._thread.mode) == ({}, 0)


def test_allocated_inside_a_capture():
    """Allocating while a stream is captured is refused and says what to give instead."""
    cuda = FakeCuda()
    cuda.new_stream(capturing=True)
    with pytest.raises(CaptureError, match="out="):
        Memory(Driver(cuda), 64, 0)


def test_out_of_memory():
    """A full device is a named error, and says how much was asked for."""
    with pytest.raises(DeviceMemoryError, match=r"cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY.*\n.*64 b"):
        Memory(Driver(FakeCuda(answers={"cuMemAlloc": 2})), 64, 0)


def test_driver_gone_at_exit():
    """Memory that outlives the driver ends without an error."""
    cuda = FakeCuda()
    memory = Memory(Driver(cuda), 64, 0)
    cuda.answers["cuCtxPushCurrent"] = 4
    del memory
    assert cuda.count("cuMemFree") == 0


def test_forked_child():
    """A child does not free its parent's memory."""
    cuda = FakeCuda()
    driver = Driver(cuda)
    memory = Memory(driver, 64, 0)
    driver.is_forked = True
    del memory
    assert cuda.count("cuMemFree") == 0
