"""The rates and latencies of a device, read from `devices.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from math import isfinite
from typing import Any

from kernelpack.errors import KernelpackError

FILE = "devices.toml"
MHZ_PER_GHZ = 1000
MAY_BE_ZERO = ("commit",)
"""A unit that a device does not have takes no time; all other numbers are positive."""


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
    cta_pace: float
    launch_us: float
    special: float

    def bytes_per_cycle(self, terabytes: float, clock_ghz: float, multiprocessors: int) -> float:
        """A share of the card's rate, for one of so many busy multiprocessors."""
        return terabytes * MHZ_PER_GHZ / clock_ghz / multiprocessors


@lru_cache(maxsize=1)
def devices() -> Mapping[str, Device]:
    """The devices that are known, by name."""
    return read((files("kernelpack.predict") / FILE).read_text(encoding="utf-8"))


def read(text: str) -> Mapping[str, Device]:
    """The devices of a file, by name.

    Raises:
        KernelpackError: a number is missing, not known, or none that a device can have.

    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise KernelpackError(f"is not TOML: {error}", where=FILE) from error
    return {name: _device(name, table) for name, table in tables.items()}


def _device(name: str, table: Mapping[str, Any]) -> Device:
    where = f"{FILE} [{name}]"
    wanted: dict[str, Any] = {
        field.name: field.type for field in fields(Device) if field.name != "name"
    }
    for key in wanted.keys() ^ table.keys():
        what = "is missing" if key in wanted else "is no number of a device"
        raise KernelpackError(f"`{key}` {what}", where=where)
    for key, kind in wanted.items():
        value = table[key]
        if not _fits(key, kind, value):
            what = {str: "a text", int: "a positive integer"}.get(kind, "a positive number")
            raise KernelpackError(f"`{key}` must be {what}, not {value!r}", where=where)
    return Device(name=name, **table)


def _fits(key: str, kind: Any, value: object) -> bool:  # noqa: ANN401 - a field's type
    """Whether a device can have a value."""
    if kind is str:
        return isinstance(value, str)
    known = (int,) if kind is int else (int, float)
    if not isinstance(value, known) or isinstance(value, bool):
        return False
    return isfinite(value) and (value > 0 or (value == 0 and key in MAY_BE_ZERO))


def listed() -> str:
    """The devices in words, for a hint."""
    return ", ".join(f"{device.name} ({device.target})" for device in devices().values())


def find(name: str) -> Device:
    """A device by its name, in letters of any case.

    Raises:
        KernelpackError: it is not known.

    """
    known = devices()
    if name.lower() not in known:
        raise KernelpackError(f"no device `{name[:60]}`", hint=f"devices: {listed()}")
    return known[name.lower()]
