"""Which GPU and which driver: what a measurement must say about where it comes from."""

import re
from pathlib import Path

from kernelpack.errors import KernelpackError
from kernelpack.runtime.driver import Device, Driver
from kernelpack.runtime.nvml import Monitor


def device_of(driver: Driver, ordinal: int) -> Device:
    """The GPU.

    Raises:
        KernelpackError: there is none of this number; says how many there are.

    """
    count = driver.device_count()
    if ordinal < count:
        return driver.device(ordinal)
    known = "it sees no GPU" if not count else f"its GPUs are 0 to {count - 1}"
    hint = "`kernelpack doctor` shows what was found; `kernelpack verify` needs no GPU"
    raise KernelpackError(f"there is no GPU {ordinal}: the {driver} says {known}", hint=hint)


def driver_words(driver: Driver, ordinal: int) -> str:
    """A driver's release and the CUDA version it knows."""
    release = Monitor(driver.bus_id(ordinal)).release()
    return f"{release}, {driver}" if release else str(driver)


def machine_words(device: Device, driver: str) -> str:
    """A GPU and its driver, whichever of several alike it is."""
    major, minor = device.capability
    return f"{device.name} {major}.{minor} {device.sm_count} {driver}"


def beside(bundle: Path, what: str, device: Device) -> Path:
    """A file about a bundle on a GPU: `X.WHAT.nvidia-h200.json` beside `X.kpk`."""
    name = re.sub(r"[^a-z0-9]+", "-", device.name.lower()).strip("-")
    return bundle.parent / f"{bundle.name.removesuffix('.kpk')}.{what}.{name}.json"
