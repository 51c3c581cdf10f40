"""The rates and latencies of a device, read from `devices.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from kernelpack.errors import KernelpackError
from kernelpack.spec.nearest import nearest

MHZ_PER_GHZ = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device; `devices.toml` says what each number is, and where it comes from."""

    name: str
    title: str
    target: str
    multiprocessors: int
    clock_ghz: float
    clock_full_ghz: float
    hbm_tbs: float
    hbm_write: float
    l2_mb: float
    l2_tbs: float
    ingest: float
    egress: float
    shared: float
    issue: float
    tma_rows: float
    tma_operation: float
    dsmem: float
    tensor_least: float
    mma: float
    load_l2: float
    load_hbm: float
    copy_l2: float
    copy_hbm: float
    load_shared: float
    tensor_latency: float
    commit: float
    wake: float
    remote: float
    store: float
    cta_start: float
    launch_us: float
    special: float

    def bytes_per_cycle(self, terabytes: float, clock_ghz: float, multiprocessors: int) -> float:
        """A share of the card's rate, for one of so many busy multiprocessors."""
        return terabytes * MHZ_PER_GHZ / clock_ghz / multiprocessors


@lru_cache(maxsize=1)
def devices() -> Mapping[str, Device]:
    """The devices that are known, by name."""
    text = (files("kernelpack.predict") / "devices.toml").read_text(encoding="utf-8")
    return {name: Device(name=name, **numbers) for name, numbers in tomllib.loads(text).items()}


def find(name: str) -> Device:
    """A device by its name.

    Raises:
        KernelpackError: it is not known.

    """
    known = devices()
    if name not in known:
        listed = f"devices: {', '.join(known)}"
        hint = nearest(name, list(known))
        raise KernelpackError(
            f"no device `{name[:60]}`", hint=f"{hint} {listed}" if hint else listed
        )
    return known[name]
