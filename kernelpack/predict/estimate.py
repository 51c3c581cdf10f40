"""A launch's time on a device, from a sample of it: replays, and the grid's arithmetic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelpack.predict import grid, traffic
from kernelpack.predict.device import Device
from kernelpack.predict.grid import Card, Shape
from kernelpack.predict.pieces import pieces_of
from kernelpack.predict.recording import Recording
from kernelpack.predict.replay import Load, Replay
from kernelpack.predict.replayer import Replayer
from kernelpack.predict.sample import CHAIN, Sample
from kernelpack.predict.traffic import MEGABYTE

TENSOR, L2 = "tensor cores", "L2 to shared memory"
FEW_STEPS = 100_000
"""Warp instructions of all recordings together, which are replayed one by one."""
CYCLES_PER_US = 1000
"""By a clock of 1 GHz."""
FULL = 0.9
"""The part of the time that tensor cores worked when the clock of a full load was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A launch's time by one set of a device's numbers.

    Attributes:
        cycles: from the first CTA's start to the last one's end.
        card: its clock, at which they pass, and how busy L2 is.
        microseconds: with the launch.
        busy: by kind of server, the part of the cycles in which the busiest one works.
        replay: of the first clusters.
        shape: of the grid.

    """

    cycles: float
    card: Card
    microseconds: float
    busy: Mapping[str, float]
    replay: Replay
    shape: Shape

    @property
    def clock_ghz(self) -> float:
        """The clock."""
        return self.card.clock_ghz


def estimate(sample: Sample, device: Device, *, is_warm: bool = False) -> Estimate:
    """The time of a launch; `is_warm` as of `predict`.

    How busy the tensor cores are decides the clock, and how busy L2 is decides what one that asks
    gets of it. A first replay finds both, a second one the time.
    """
    is_warm = is_warm and _has_room(sample, device)
    busy = on(sample, device, Card(clock_ghz=device.clock_ghz, is_warm=is_warm)).busy
    part = min(busy[TENSOR] / FULL, 1.0)
    card = Card(
        clock_ghz=device.clock_ghz - part * (device.clock_ghz - device.clock_full_ghz),
        spare_l2=max(1 - busy[L2], 0.0),
        is_warm=is_warm,
    )
    return on(sample, device, card)


def _has_room(sample: Sample, device: Device) -> bool:
    """Whether L2 can have all that a launch reads, and what it writes."""
    clusters = sample.plan.grid.count // sample.plan.cluster.count
    return traffic.fits(traffic.allocations(sample.recordings, clusters), device)


def on(sample: Sample, device: Device, card: Card) -> Estimate:
    """The time on a card that is so."""
    one = sample.recordings[0]
    shape = grid.shape(sample.plan, sample.code, device, one.columns // len(one.ctas))
    if shape.waves <= 1:
        longest = {id(one): one for one in _longest(sample.recordings)}.values()
        alone = (_alone(sample, one, device, card, shape) for one in longest)
        replay, cycles = max(alone, key=lambda found: found[1])
    else:
        replay, cycles = _waves(sample, device, card, shape)
    cycles = max(cycles, written(cycles, replay, device, card))
    return Estimate(
        cycles=cycles,
        card=card,
        microseconds=(cycles - early(replay, shape)) / card.clock_ghz / CYCLES_PER_US
        + device.launch_us,
        busy={name: used / max(replay.cycles, 1.0) for name, used in replay.busy.items()},
        replay=replay,
        shape=shape,
    )


def written(cycles: float, replay: Replay, device: Device, card: Card) -> float:
    """When memory has taken what L2 cannot keep, where all that is moved is more than that.

    CTAs end when L2 has their stores, and L2 hands them on.
    """
    part = replay.busy["HBM"] / max(replay.cycles, 1.0)
    rate = device.hbm_tbs * grid.BYTES_PER_KILOBYTE / card.clock_ghz
    return cycles * part - device.l2_mb * MEGABYTE / rate


def early(replay: Replay, shape: Shape) -> float:
    """Cycles that lie beside the launch before, where all are programmatic dependents.

    What a launch does before it waits for the one before, after that one has let it begin; as far
    as there is room for CTAs of both.
    """
    if not (replay.waited and replay.triggered):
        return 0.0
    room = min(max(shape.places / shape.clusters - 1, 0.0), 1.0)
    return room * min(replay.waited, max(replay.cycles - replay.triggered, 0.0))


def _longest(recordings: Sequence[Recording]) -> Sequence[Recording]:
    """The clusters that may end last: all where that is soon done, else those with most to do."""
    if sum(one.steps for one in recordings) < FEW_STEPS:
        return recordings
    by_steps = max(recordings, key=lambda one: one.all_steps)
    by_bytes = max(recordings, key=lambda one: sum(t.read + t.written for t in one.traffic))
    return by_steps, by_bytes


def _alone(
    sample: Sample, first: Recording, device: Device, card: Card, shape: Shape
) -> tuple[Replay, float]:
    """A group of multiprocessors, with a cluster and all that lie beside it."""
    groups = max(int(shape.groups), 1)
    numbers = range(first.number % groups, shape.clusters, groups)
    together = [min(sample.recordings, key=lambda one: abs(one.number - n)) for n in numbers]
    together = together[: shape.resident]
    load = grid.load(sample, together, shape, device, card)
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
    replayer = Replayer(recordings, pieces_of(sample.costs), device, load)
    replay = replayer.run(clusters=clusters, resident=shape.resident)
    steps, all_steps = (sum(getattr(one, name) for one in recordings) for name in STEPS)
    if all_steps == steps:
        return replay, replay.cycles
    rate = (replay.cycles - replay.half) / (replay.steps / 2)
    return replay, replay.cycles + rate * replay.steps * (all_steps / steps - 1)


STEPS = ("steps", "all_steps")


def _waves(sample: Sample, device: Device, card: Card, shape: Shape) -> tuple[Replay, float]:
    """A replay of the first waves, and the cycles of all."""
    if sample.chain:
        return _chained(sample, sample.chain, device, card, shape)
    copies = min(shape.each, shape.few)
    turns = _turns(sample, copies, shape)
    load = grid.load(sample, turns, shape, device, card)
    replay, cycles = _replay(sample, turns, device, load, copies, shape)
    if copies == shape.each:
        return replay, cycles
    each = sum(one.all_steps for one in turns) / copies
    start = device.cta_start
    return replay, start + (cycles - start) * grid.turns(sample.steps, shape, copies, each)


def _turns(sample: Sample, copies: int, shape: Shape) -> list[Recording]:
    """Clusters of the whole grid in turn: of each part the recorded one that is nearest."""
    places = [(n + 0.5) / copies * shape.clusters for n in range(copies)]
    return [min(sample.recordings, key=lambda one: abs(one.number - at)) for at in places]


def _chained(
    sample: Sample, chain: Recording, device: Device, card: Card, shape: Shape
) -> tuple[Replay, float]:
    """A replay of a cluster that takes others over, and the cycles of as many as it does.

    The first one has the start for itself; each other one begins beside the one before it.
    """
    turns = _turns(sample, 1, shape) * shape.resident
    load = grid.load(sample, turns, shape, device, card)
    _, first = _replay(sample, turns, device, load, len(turns), shape)
    turns = [chain] * shape.resident
    replay, cycles = _replay(sample, turns, device, load, len(turns), shape)
    each = chain.all_steps / CHAIN
    more = grid.turns(sample.steps, shape, shape.resident, each) - 1
    return replay, first + more * (cycles - first) / (CHAIN - 1)
