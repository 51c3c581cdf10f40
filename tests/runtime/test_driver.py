"""The door to CUDA: errors by name, devices, contexts, streams, pointers, forks."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernelpack.errors import CaptureError, DeviceMemoryError, DriverError, ForkError
from kernelpack.runtime.driver import Device, Driver, connect
from tests.fakes.driver import FakeCuda, FakeDevice

ROOT = Path(__file__).parents[2]
TWO = (FakeDevice(), FakeDevice(name="NVIDIA B200", capability=(10, 0), sm_count=148))
FORK = """
import os
from kernelpack.errors import ForkError
from kernelpack.runtime.driver import Driver
from tests.fakes.driver import FakeCuda

driver = Driver(FakeCuda())
if os.fork() == 0:
    try:
        driver.device_count()
    except ForkError:
        os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_error_names_call_code_and_text():
    """An error of the driver says which call, the code's name and number, the driver's text."""
    cuda = FakeCuda(answers={"cuDeviceGetCount": 100})
    with pytest.raises(DriverError) as caught:
        Driver(cuda).device_count()
    assert str(caught.value) == "cuDeviceGetCount: CUDA_ERROR_NO_DEVICE (100): text of 100"


def test_code_newer_than_the_bindings():
    """A code without a name still makes an error with its number."""
    cuda = FakeCuda(answers={"cuDeviceGetCount": 77_777})
    with pytest.raises(DriverError, match=r"unknown error \(77777\)"):
        Driver(cuda).device_count()


@pytest.mark.parametrize("code", [900, 901, 906, 908])
def test_capture_error_says_preload(code):
    """What a capture forbids is its own error, which says what to do before the capture."""
    cuda = FakeCuda(answers={"cuDeviceGetCount": code})
    with pytest.raises(CaptureError, match="preload"):
        Driver(cuda).device_count()


def test_driver_that_does_not_start():
    """An error of cuInit is raised when a program connects."""
    with pytest.raises(DriverError, match="cuInit: CUDA_ERROR_NO_DEVICE"):
        Driver(FakeCuda(answers={"cuInit": 100}))


def test_no_libcuda():
    """Bindings that find no libcuda give a named error with what to install."""

    class NoLibrary(FakeCuda):
        def on_cuInit(self, flags):  # noqa: N802
            raise RuntimeError("libcuda.so.1 not found")

    with pytest.raises(
        DriverError, match=r"libcuda.* is not there\nhint: install an NVIDIA driver; .*Emulated"
    ):
        Driver(NoLibrary())


def test_an_old_libcuda():
    """A call that libcuda lacks is named, and a newer driver is asked for."""

    class Old(FakeCuda):
        def on_cuDeviceGetCount(self):  # noqa: N802
            raise RuntimeError("not found")

    with pytest.raises(DriverError, match=r"cuDeviceGetCount: .*lacks this call\nhint: .*newer"):
        Driver(Old()).device_count()


def test_no_bindings(monkeypatch):
    """Without cuda.bindings, connecting says which package to install."""
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    with pytest.raises(DriverError, match="pip install"):
        connect()


def test_importing_touches_no_driver():
    """Importing everything that launches loads no module of CUDA's bindings."""
    modules = "kernelpack.ops, kernelpack.load.load, kernelpack.runtime.launch"
    program = f"import sys, {modules}; print(any(m.startswith('cuda') for m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_device():
    """A device is described by name, capability and multiprocessors."""
    expected = Device(ordinal=1, name="NVIDIA B200", capability=(10, 0), sm_count=148)
    assert expected == Driver(FakeCuda(devices=TWO)).device(1)


def test_device_is_asked_once():
    """What a device is does not change, so it is asked once."""
    cuda = FakeCuda()
    driver = Driver(cuda)
    assert driver.device(0) == driver.device(0)
    assert cuda.count("cuDeviceGetName") == 1


def test_texts():
    """A device and a driver read as a person would write them."""
    driver = Driver(FakeCuda(version=12_090))
    assert str(driver) == "driver of CUDA 12.9"
    assert str(driver.device(0)) == "device 0 (NVIDIA H100, compute capability 9.0)"


def test_context_is_put_back():
    """Work on a device leaves the thread's current context as it was, also after an error."""
    cuda = FakeCuda(devices=TWO)
    driver = Driver(cuda)
    cuda.stack.append(0x1001)
    with pytest.raises(ValueError, match="any"), driver.current(0):
        raise ValueError("any")
    assert cuda.stack == [0x1001]


@pytest.mark.parametrize("stream", [0, 1, 2])
def test_default_stream_has_no_device(stream):
    """A default stream belongs to whatever context is current."""
    assert Driver(FakeCuda()).stream_device(stream) is None


def test_stream_device():
    """A stream's device is the driver's answer, whatever is current."""
    cuda = FakeCuda(devices=TWO)
    assert Driver(cuda).stream_device(cuda.new_stream(1)) == 1


@pytest.mark.parametrize("capturing", [False, True])
def test_is_capturing(capturing):
    """A stream that is being captured says so."""
    cuda = FakeCuda()
    stream = cuda.new_stream(capturing=capturing)
    assert Driver(cuda).is_capturing(stream, 0) is capturing


def test_legacy_stream_beside_a_capture():
    """The legacy stream is refused while another is captured; that counts as capturing."""
    cuda = FakeCuda(answers={"cuStreamIsCapturing": 906})
    assert Driver(cuda).is_capturing(0, 0)


def test_unexpected_answer_about_a_capture():
    """Any other code is an error, not an answer."""
    cuda = FakeCuda(answers={"cuStreamIsCapturing": 400})
    with pytest.raises(DriverError, match="CUDA_ERROR_INVALID_HANDLE"):
        Driver(cuda).is_capturing(0, 0)


def test_pointer_device():
    """An address inside an allocation belongs to the allocation's device."""
    cuda = FakeCuda(devices=TWO)
    assert Driver(cuda).pointer_device(cuda.new_memory(100, 1) + 99) == 1


def test_host_pointer_has_no_device():
    """An address that the driver does not know is not device memory."""
    assert Driver(FakeCuda()).pointer_device(0x1234) is None


def test_unexpected_answer_about_a_pointer():
    """Any other code is an error, not an answer."""
    cuda = FakeCuda(answers={"cuPointerGetAttribute": 201})
    with pytest.raises(DriverError, match="CUDA_ERROR_INVALID_CONTEXT"):
        Driver(cuda).pointer_device(0x1234)


def test_fork():
    """A process that was forked after connecting is refused before libcuda is asked."""
    cuda = FakeCuda()
    driver = Driver(cuda)
    driver.is_forked = True
    with pytest.raises(ForkError, match="load the bundle after the fork"):
        driver.device_count()
    assert cuda.count("cuDeviceGetCount") == 0


def test_fork_of_a_real_process():
    """The child of os.fork gets a ForkError; the parent lives on."""
    done = subprocess.run(
        [sys.executable, "-c", FORK], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "7"


def test_a_full_device():
    """Whatever finds no memory says so by its class: a context needs some, too."""
    driver = Driver(FakeCuda(answers={"cuDevicePrimaryCtxRetain": 2}))
    with pytest.raises(DeviceMemoryError, match="cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEM"):
        driver.context(0)
