"""What the management library knows of a GPU, and what is reported where it does not."""

import ctypes
from types import SimpleNamespace

import pytest

from kernelpack.runtime import nvml
from kernelpack.runtime.nvml import Monitor

BUS = "00000000:19:00.0"
CLOCKS = {1: 1755, 2: 2619}


def number(value):
    def tell(_device, argument, found):
        ctypes.cast(found, ctypes.POINTER(ctypes.c_uint))[0] = value(argument)
        return 0

    return tell


def release(text, _size):
    text.value = b"580.65.06"
    return 0


def fake(**changes):
    """A library that answers; `changes` are other answers."""
    calls = {
        "nvmlInit_v2": lambda: 0,
        "nvmlDeviceGetHandleByPciBusId_v2": lambda bus, _device: int(bus != BUS.encode()),
        "nvmlSystemGetDriverVersion": release,
        "nvmlDeviceGetClockInfo": number(CLOCKS.get),
        "nvmlDeviceGetMaxClockInfo": number(lambda _: 1980),
        "nvmlDeviceGetTemperature": number(lambda _: 41),
    }
    return SimpleNamespace(**(calls | changes))


def refuse(*_arguments):
    return 3


def test_told():
    """The release, clocks and heat of the GPU at a place."""
    monitor = Monitor(BUS, fake())
    expected = {"sm_mhz": 1755, "most_sm_mhz": 1980, "memory_mhz": 2619, "celsius": 41}
    assert (monitor.release(), monitor.numbers()) == ("580.65.06", expected)


def test_not_all_told():
    """What a GPU does not report is left out."""
    found = Monitor(BUS, fake(nvmlDeviceGetTemperature=refuse)).numbers()
    assert "celsius" not in found
    assert found["sm_mhz"] == 1755


@pytest.mark.parametrize("call", ["nvmlInit_v2", "nvmlDeviceGetHandleByPciBusId_v2"])
def test_nothing_told(call):
    """A library that does not start, or knows no such GPU, gives nothing."""
    monitor = Monitor(BUS, fake(**{call: refuse}))
    assert (monitor.release(), monitor.numbers()) == ("", {})


def test_no_library(monkeypatch):
    """Without the library nothing is reported, and nothing fails."""
    monkeypatch.setattr(nvml, "_LIBRARY", "libnvidia-ml-of-no-driver.so.1")
    monitor = Monitor(BUS)
    assert (monitor.release(), monitor.numbers()) == ("", {})
