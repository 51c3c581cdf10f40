"""What a launch should cost on a device, as people ask: a band of times, what binds, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelpack.errors import KernelpackError
from kernelpack.predict.device import Device
from kernelpack.predict.estimate import Estimate, estimate, on
from kernelpack.predict.gains import gains
from kernelpack.predict.grid import Card
from kernelpack.predict.sample import Sample
from kernelpack.predict.shares import Share, shares

BINDS = 0.75
"""A server that works so much of the time is what binds."""
LAUNCH = "the launch"
UNCERTAIN = ("load_l2", "load_hbm", "copy_l2", "copy_hbm")
"""Latencies that a band varies."""
LATENCY_BAND, L2_BAND = (0.8, 1.25), (1.25, 0.75)
"""Factors of a favourable device, and of an unfavourable one."""
POOR_CLOCK = 0.93
"""The clock of an unfavourable device, of that of a full load: data and power limits differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A launch's predicted time.

    Attributes:
        device: for which.
        low: microseconds, where each number of the device that is not certain is favourable.
        middle: as the device is given.
        high: where each is unfavourable.
        bound: what binds: a kind of server, `latency` or `the launch`.
        gains: by kind of server, the part of the cycles that go where it is twice as fast; those
            that work little are left out. Under `latency` where all latencies are half as long.
        shares: of the critical path of a cluster, the largest first.
        busy: by kind of server, the part of the time in which the busiest one works.
        cycles: by kind of server, those it works for a cluster.
        estimate: that of the middle.

    """

    device: Device
    low: float
    middle: float
    high: float
    bound: str
    gains: Mapping[str, float]
    shares: tuple[Share, ...]
    busy: Mapping[str, float]
    cycles: Mapping[str, float]
    estimate: Estimate


def predict(sample: Sample, device: Device, *, is_warm: bool = False) -> Prediction:
    """Predict a launch.

    Args:
        sample: of the launch.
        device: on which.
        is_warm: whether L2 has from the start what the launch reads, if there is room for that
            and for what it writes.

    Raises:
        KernelpackError: the replay stands still, so it is not one of the recording.

    """
    found = _moving(estimate(sample, device, is_warm=is_warm), sample)
    ends = (favourable(device), poor(device))
    saved = gains(sample, device, found)
    times = sorted([found.microseconds, *(_varied_time(sample, one, found.card) for one in ends)])
    return Prediction(
        device=device,
        low=times[0],
        middle=found.microseconds,
        high=times[-1],
        bound=bound_of(found, device, saved),
        gains=saved,
        shares=shares(found.replay, sample.costs),
        busy=found.busy,
        cycles=_cycles(found),
        estimate=found,
    )


def favourable(device: Device) -> Device:
    """A device with the better end of each number's band."""
    return _varied(device, 0, device.clock_ghz)


def poor(device: Device) -> Device:
    """A device with the worse end of each number's band."""
    return _varied(device, 1, POOR_CLOCK * device.clock_full_ghz)


def _varied(device: Device, end: int, clock_ghz: float) -> Device:
    latencies = {name: getattr(device, name) * LATENCY_BAND[end] for name in UNCERTAIN}
    rate = device.l2_tbs * L2_BAND[end]
    return replace(device, **latencies, l2_tbs=rate, clock_ghz=clock_ghz)


def _varied_time(sample: Sample, device: Device, card: Card) -> float:
    """Microseconds of another device, whose L2 is as busy."""
    card = replace(card, clock_ghz=device.clock_ghz)
    return _moving(on(sample, device, card), sample).microseconds


def _moving(found: Estimate, sample: Sample) -> Estimate:
    """An estimate, whose replay went to its end.

    Raises:
        KernelpackError: it did not.

    """
    if found.replay.stuck:
        raise KernelpackError(
            "a warp of the replay waits for what never comes, so no time is given",
            where=sample.plan.entry,
            hint="clusters that exchange data while they run cannot be replayed one by one",
        )
    return found


def bound_of(found: Estimate, device: Device, saved: Mapping[str, float]) -> str:
    """What binds a launch.

    The unit that works most of the time; of several the one that saves most where it is twice as
    fast. Where none does: what saves most, a unit that is twice as fast, or all latencies half as
    long.

    Args:
        found: the launch's time.
        device: on which.
        saved: its `gains`; they may be left out where one unit works most of the time.

    """
    if 2 * device.launch_us >= found.microseconds:
        return LAUNCH
    full = full_units(found)
    if len(full) == 1:
        return full[0]
    return max(full or saved, key=saved.__getitem__)


def full_units(found: Estimate) -> list[str]:
    """The units that work most of the time."""
    return [name for name, part in found.busy.items() if part >= BINDS]


def _cycles(found: Estimate) -> Mapping[str, float]:
    """Cycles of each kind of server for a whole cluster, where a part of it was recorded too."""
    recording, replay = found.replay.recording, found.replay
    longer = max(recording.all_steps, 1) / max(recording.steps, 1)
    return {name: used * longer / replay.clusters for name, used in replay.busy.items() if used}
