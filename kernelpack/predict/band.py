"""How sure a prediction is, and what binds: the same replay by faster and by slower numbers."""

from dataclasses import dataclass, replace

from kernelpack.predict.device import Device
from kernelpack.predict.estimate import Estimate, estimate
from kernelpack.predict.sample import Sample

LATENCY = "latency"
MOSTLY = 0.6
"""A unit binds that works at least this part of the time."""
_LATENCIES = ("load_l2", "load_hbm", "copy_l2", "copy_hbm")
_SLOW = {**dict.fromkeys(_LATENCIES, 1.2), "ingest": 0.75, "l2_tbs": 0.85, "clock_full_ghz": 0.9}
_FAST = {**dict.fromkeys(_LATENCIES, 0.8), "ingest": 1.5, "l2_tbs": 1.15, "clock_full_ghz": 1.1}
"""What nobody publishes of a B200: how late bytes of L2 are, how fast they come, and the clock
under power. So 720 to 1,080 cycles, 48 to 96 bytes a cycle, 1.26 to 1.54 GHz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Microseconds of a launch by a device's fast, middle and slow numbers."""

    low: float
    middle: float
    high: float


def band(sample: Sample, device: Device) -> Band:
    """The times between which a launch's time should be."""
    middle = estimate(sample, device).microseconds
    others = [
        estimate(sample, other).microseconds
        for other in (_scaled(device, f) for f in (_FAST, _SLOW))
    ]
    return Band(low=min(middle, *others), middle=middle, high=max(middle, *others))


def _scaled(device: Device, factors: dict[str, float]) -> Device:
    numbers = {name: getattr(device, name) * factor for name, factor in factors.items()}
    numbers["clock_full_ghz"] = min(numbers["clock_full_ghz"], device.clock_ghz)
    return replace(device, **numbers)


def binds(found: Estimate) -> str:
    """The unit that works most of the time; where none does, each waits for another: latency."""
    name, part = max(found.busy.items(), key=lambda one: one[1])
    return name if part >= MOSTLY else LATENCY
