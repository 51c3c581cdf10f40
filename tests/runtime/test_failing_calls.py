"""Every call of the driver fails in turn: nothing is left, and the next use works."""

import numpy as np
import pytest

from kernelpack.errors import DriverError
from kernelpack.runtime.driver import Driver
from kernelpack.runtime.library import Functions, Image
from kernelpack.runtime.memory import Memory
from kernelpack.runtime.occupancy import Occupancy
from kernelpack.runtime.streams import Graph, Timer, new_stream, synchronize, wait
from kernelpack.spec.fitting import Cta
from tests.fakes.driver import FakeCuda
from tests.fakes.variants import variant

USERS_CONTEXT = 0x1001
CODES = (1, 2, 3, 100, 101, 200, 201, 209, 400, 700, 719, 900, 906, 999)
"""A call's arguments, memory, a driver that is gone, no device, a context, machine code, a handle,
a kernel's fault, a capture, and anything else."""


class FailingCuda(FakeCuda):
    """Fails one call, counted from the first; none at -1."""

    fail_at, code, failed = -1, 0, ""

    def _answer(self, name, arguments):
        if len(self.calls) == self.fail_at and not name.startswith("cuGetError"):
            self.calls.append(name)
            self.failed, self.fail_at = name, -1
            return (self.code, None)
        return super()._answer(name, arguments)


def use(driver):
    """What a program does with one device, from machine code to a graph."""
    functions = Functions(driver)
    function = functions.make(variant(), lambda: Image(data=b"cubin"), 0)
    Occupancy(driver).clusters(function, Cta(threads=128, shared_bytes=1024, registers=32), 2)
    memory = Memory(driver, 64, 0)
    memory.write(np.arange(8))
    memory.fill(1)
    memory.read(np.empty(8, np.int64))
    del memory
    with new_stream(driver, 0) as stream, new_stream(driver, 0) as other:
        driver.is_capturing(stream, 0)
        driver.stream_device(stream)
        wait(driver, stream, other, 0)
        timer, graph = Timer(driver, 0), Graph(driver, 0)
        timer.start(stream)
        with graph.capture(stream):
            driver.stream_device(stream)
        graph.launch(stream)
        timer.stop(stream)
        synchronize(driver, stream, 0)
        timer.milliseconds()
        graph.destroy()
    functions.unload()


def started():
    """A driver on a thread whose context is the user's, and what stands for libcuda."""
    cuda = FailingCuda()
    driver = Driver(cuda)
    cuda.stack.append(USERS_CONTEXT)
    return cuda, driver


def first_calls():
    """The calls of one use, in order."""
    cuda, driver = started()
    before = len(cuda.calls)
    use(driver)
    return list(enumerate(cuda.calls))[before:]


CALLS = first_calls()
RESTORED = next(i for i, name in CALLS if name == "cuMemFree") + 1
"""The call that puts the capture mode back. Nobody can where it fails, nor pop where a pop does."""
ANSWERS = {("cuStreamIsCapturing", 906)}
"""What is not an error: a capture of another stream forbids to ask."""


@pytest.mark.parametrize(("place", "name"), CALLS)
def test_a_failing_call(place, name):
    """The error names that call; context, capture mode and memory are as before; it works again."""
    for code in CODES:
        cuda, driver = started()
        cuda.fail_at, cuda.code = place, code
        try:
            use(driver)
            said = ""
        except DriverError as error:
            said = str(error)
        assert cuda.failed == name
        silent = is_in_destructor(place) or (name, code) in ANSWERS
        assert silent or said.startswith(f"{name}: "), (code, said)
        assert silent or f"({code})" in said or (code >= 900 and "captured" in said)
        assert cuda.stack == [USERS_CONTEXT] or name == "cuCtxPopCurrent", code
        assert getattr(cuda._thread, "mode", 0) == 0 or place == RESTORED, code
        use(driver)


def is_in_destructor(place):
    """Whether a call is of those that free memory, which raise nothing."""
    return RESTORED - 3 <= place <= RESTORED + 1
