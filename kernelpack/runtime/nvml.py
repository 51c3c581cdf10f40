"""Facts of a GPU from NVIDIA's management library: the driver's release, clocks, heat.

It comes with the driver, and may be missing in a container. It only describes a measurement, so
what it does not know is absent, and nothing fails for it. Nothing of the GPU is changed.
"""

import ctypes
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"
# nvml.h: NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU
_SM, _MEMORY, _HEAT = 1, 2, 0
_TEXT_BYTES = 96

NUMBERS = {
    "sm_mhz": ("nvmlDeviceGetClockInfo", _SM),
    "most_sm_mhz": ("nvmlDeviceGetMaxClockInfo", _SM),
    "memory_mhz": ("nvmlDeviceGetClockInfo", _MEMORY),
    "celsius": ("nvmlDeviceGetTemperature", _HEAT),
}
"""Questions to a GPU: name → the library's function and its argument."""


class Monitor:
    """The library, beside one GPU.

    Args:
        bus_id: where the GPU is plugged in, as `Driver.bus_id` gives it.
        library: libnvidia-ml, or what a test puts in its place; None opens it.

    """

    def __init__(self, bus_id: str, library: Any = None) -> None:  # noqa: ANN401 - of ctypes
        self._library = library or _open()
        self._device = ctypes.c_void_p()
        if self._library is not None:
            self._begin(bus_id)

    def _begin(self, bus_id: str) -> None:
        device = ctypes.byref(self._device)
        begun = self._library.nvmlInit_v2() == 0
        by_bus = self._library.nvmlDeviceGetHandleByPciBusId_v2
        if not begun or by_bus(bus_id.encode(), device) != 0:
            self._library = None

    def release(self) -> str:
        """The driver's release, such as 580.65.06; empty where the library does not know."""
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        if self._library is None:
            return ""
        code = self._library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(_TEXT_BYTES))
        return "" if code else text.value.decode()

    def numbers(self) -> dict[str, int]:
        """Clocks and heat at this moment; what the library does not know is left out."""
        found = {name: self._number(*call) for name, call in NUMBERS.items()}
        return {name: value for name, value in found.items() if value is not None}

    def _number(self, function: str, argument: int) -> int | None:
        value = ctypes.c_uint()
        if self._library is None:
            return None
        ask = getattr(self._library, function)
        return None if ask(self._device, argument, ctypes.byref(value)) else value.value


def _open() -> Any:  # noqa: ANN401 - of ctypes
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
