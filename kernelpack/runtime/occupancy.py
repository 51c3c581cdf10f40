"""How many clusters of a kernel run at once on a device: the driver is asked, and remembered.

GPCs differ from GPU to GPU, so that no table can say it: it depends on the kernel, the device, the
CTAs of a cluster, and the threads and shared memory of each.
"""

import ctypes
from threading import Lock

from kernelpack.runtime.driver import Driver
from kernelpack.runtime.launch import CLUSTER_DIMENSION, LaunchAttribute, LaunchConfig
from kernelpack.runtime.library import Function
from kernelpack.spec.arch import MOST_CTAS
from kernelpack.spec.fitting import Cta

INVALID_CLUSTER_SIZE = 912
"""CUresult: the kernel can never have so many CTAs in a cluster."""

_NAME = "cuOccupancyMaxActiveClusters"
_Key = tuple[str, int, Cta, int]


class Occupancy:
    """A driver's answers about kernels. Shared by threads; a known answer costs no lock."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._known: dict[_Key, int] = {}
        self._lock = Lock()

    def clusters(self, function: Function, cta: Cta, ctas: int) -> int:
        """How many clusters of `ctas` such CTAs run at once; 0: not even one fits.

        Raises:
            DriverError: the driver refuses to say.

        """
        if ctas > MOST_CTAS:
            return 0
        key = (function.variant.id, function.device.ordinal, cta, ctas)
        known = self._known.get(key)
        if known is None:
            with self._lock:
                known = self._known[key] = self._ask(function, cta, ctas)
        return known

    def _ask(self, function: Function, cta: Cta, ctas: int) -> int:
        ask = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3)(self._driver.entry(_NAME))
        attribute = LaunchAttribute(id=CLUSTER_DIMENSION, value=(ctas, 1, 1))
        config = LaunchConfig(
            grid=(ctas, 1, 1),
            block=(cta.threads, 1, 1),
            shared_bytes=cta.shared_bytes,
            attributes=ctypes.addressof(attribute),
            attribute_count=1,
        )
        count = ctypes.c_int()
        with self._driver.current(function.device.ordinal):
            code = ask(ctypes.addressof(count), function.loaded, ctypes.addressof(config))
        if code == INVALID_CLUSTER_SIZE:
            return 0
        if code:
            raise self._driver.error(_NAME, code)
        return count.value
