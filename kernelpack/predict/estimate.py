"""A launch's time on a device, from a sample of it: replays, and the grid's arithmetic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelpack.predict import grid
from kernelpack.predict.device import Device
from kernelpack.predict.grid import Shape
from kernelpack.predict.recording import Recording
from kernelpack.predict.replay import Load, Replay, Replayer
from kernelpack.predict.sample import Sample

MOST_COPIES = 6
"""Clusters that follow each other in a replay; what comes after them is as they are."""
TENSOR = "tensor cores"
FULL = 0.9
"""The part of the time that tensor cores worked when the clock of a full load was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A launch's time by one set of a device's numbers.

    Attributes:
        cycles: from the first CTA's start to the last one's end.
        clock_ghz: at which they pass.
        microseconds: with the launch.
        busy: by kind of server, the part of the cycles in which the busiest one works.
        replay: of the first clusters.
        shape: of the grid.

    """

    cycles: float
    clock_ghz: float
    microseconds: float
    busy: Mapping[str, float]
    replay: Replay
    shape: Shape


def estimate(sample: Sample, device: Device) -> Estimate:
    """The time of a launch.

    The clock depends on how busy the tensor cores are, and bytes a cycle depend on the clock: a
    first replay at the light clock finds it, a second one the time.
    """
    first = _at_clock(sample, device, device.clock_ghz)
    part = min(first.busy[TENSOR] / FULL, 1.0)
    clock = device.clock_ghz - part * (device.clock_ghz - device.clock_full_ghz)
    return _at_clock(sample, device, clock)


def _at_clock(sample: Sample, device: Device, clock_ghz: float) -> Estimate:
    shape = grid.shape(sample.plan, sample.code, device)
    if shape.waves <= 1:
        alone = (_alone(sample, one, device, clock_ghz, shape) for one in sample.recordings)
        replay, cycles = max(alone, key=lambda found: found[1])
    else:
        replay, cycles = _waves(sample, device, clock_ghz, shape)
    return Estimate(
        cycles=cycles,
        clock_ghz=clock_ghz,
        microseconds=cycles / clock_ghz / 1000 + device.launch_us,
        busy={name: used / max(replay.cycles, 1.0) for name, used in replay.busy.items()},
        replay=replay,
        shape=shape,
    )


def _alone(
    sample: Sample, first: Recording, device: Device, clock_ghz: float, shape: Shape
) -> tuple[Replay, float]:
    """A group of multiprocessors, with a cluster and those that lie beside it."""
    numbers = range(first.number, shape.clusters, max(int(shape.groups), 1))
    together = [min(sample.recordings, key=lambda one: abs(one.number - n)) for n in numbers]
    together = together[: shape.resident]
    load = grid.load(sample, together, shape, device, clock_ghz)
    return _replay(sample, together, device, load, len(together), shape)


def _replay(
    sample: Sample,
    recordings: Sequence[Recording],
    device: Device,
    load: Load,
    clusters: int,
    shape: Shape,
) -> tuple[Replay, float]:
    """A replay, and its cycles with those of the steps that were not recorded."""
    replayer = Replayer(recordings, sample.costs, device, load)
    replay = replayer.run(clusters=clusters, resident=shape.resident)
    steps, all_steps = (sum(getattr(one, name) for one in recordings) for name in STEPS)
    if all_steps == steps:
        return replay, replay.cycles
    rate = (replay.cycles - replay.half) / (replay.steps / 2)
    return replay, replay.cycles + rate * replay.steps * (all_steps / steps - 1)


STEPS = ("steps", "all_steps")


def _waves(sample: Sample, device: Device, clock_ghz: float, shape: Shape) -> tuple[Replay, float]:
    """A replay of the first waves, and the cycles of all."""
    resident, recordings = shape.resident, sample.recordings
    load = grid.load(sample, recordings, shape, device, clock_ghz)
    copies = min(shape.each, max(MOST_COPIES, 3 * resident))
    replay, cycles = _replay(sample, recordings, device, load, copies, shape)
    if copies == shape.each:
        return replay, cycles
    _, before = _replay(sample, recordings, device, load, copies - 2 * resident, shape)
    left = shape.waves * resident + resident / 2 - copies
    return replay, cycles + left * (cycles - before) / (2 * resident)
