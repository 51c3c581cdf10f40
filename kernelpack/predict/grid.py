"""A whole grid from a few of its clusters: who runs beside whom, and how often."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from kernelpack.predict import traffic
from kernelpack.predict.device import Device
from kernelpack.predict.recording import Recording
from kernelpack.predict.replay import Load
from kernelpack.predict.sample import Sample
from kernelpack.spec.arch import Arch
from kernelpack.spec.fitting import Cta, of_target
from kernelpack.spec.launch import Plan
from kernelpack.toolchain.issued import MachineCode

BYTES_PER_KILOBYTE = 1000
"""TB/s over GHz are kilobytes a cycle."""
MOST_COPIES = 6
"""Clusters that follow each other in a replay; what comes after them is as they are."""
TENSOR_COLUMNS = 512
"""Of a multiprocessor; who allocates more than are free waits until another CTA has ended."""
ALIKE = 1.1
"""Clusters are alike whose warp instructions differ by a smaller factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A grid on a device.

    Attributes:
        clusters: of the whole grid.
        cluster: CTAs of one.
        resident: CTAs that fit on a multiprocessor.
        places: clusters that run at a time.

    """

    clusters: int
    cluster: int
    resident: int
    places: int

    @property
    def groups(self) -> float:
        """Groups of multiprocessors that each hold a cluster, or several beside each other."""
        return max(self.places / self.resident, 1.0)

    @property
    def waves(self) -> float:
        """How often all places are filled; below 1 where some stay empty."""
        return self.clusters / self.places

    @property
    def each(self) -> int:
        """Clusters that the busiest group runs."""
        return ceil(self.clusters / self.groups)

    @property
    def few(self) -> int:
        """Clusters of a group that are few enough to be replayed all."""
        return max(MOST_COPIES, 3 * self.resident)

    @property
    def busy(self) -> int:
        """Multiprocessors that have something to do."""
        return ceil(min(self.clusters, self.groups) * self.cluster)


def shape(plan: Plan, code: MachineCode, device: Device, columns: int = 0) -> Shape:
    """The shape of a launch on a device, each of whose CTAs takes so many columns of its TMEM."""
    cta = Cta(
        threads=plan.block.count,
        shared_bytes=plan.shared_bytes + code.shared_bytes,
        registers=code.registers,
    )
    fits = of_target(Arch(device.target), device.multiprocessors)
    cluster = plan.cluster.count
    resident = max(fits(cta, 1) // device.multiprocessors, 1)
    beside = max(min(resident, TENSOR_COLUMNS // columns), 1) if columns else resident
    return Shape(
        clusters=plan.grid.count // cluster,
        cluster=cluster,
        resident=beside,
        places=max(fits(cta, cluster) * beside // resident, 1),
    )


def turns(steps: Mapping[int, int], shape: Shape, copies: int, each: float) -> float:
    """How often so many clusters, of so many warp instructions each, go into the whole grid's time.

    Clusters begin in order, each where another one has ended. Where all are alike the busiest place
    counts if places run few, and half a cluster more than the mean if they run many.

    Args:
        steps: warp instructions of some clusters, by number.
        shape: the grid.
        copies: how many clusters are replayed together.
        each: warp instructions of each.

    """
    numbers = sorted(steps)
    known = [steps[number] for number in numbers]
    if max(known) > ALIKE * min(known):
        of_all = np.interp(np.arange(shape.clusters), numbers, known)
        return _makespan(of_all, shape.places) * shape.resident / each / copies
    many = (shape.waves + 1 / 2) * shape.resident
    return (shape.each if shape.each <= shape.few else many) / copies


def _makespan(clusters: NDArray[np.float64], places: int) -> float:
    """When the last of them ends, each begun in order where another one ends first."""
    ends = [0.0] * min(places, len(clusters))
    for steps in clusters.tolist():
        heapq.heapreplace(ends, ends[0] + steps)
    return max(ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """How the card is.

    Attributes:
        clock_ghz: its clock.
        spare_l2: the part of the time in which L2 is not asked.
        is_warm: whether L2 has from the start what a launch reads.
        faster: a kind of unit that is twice as fast as the device's, to see what that saves.

    """

    clock_ghz: float
    spare_l2: float = 0.0
    is_warm: bool = False
    faster: str = ""


def load(
    sample: Sample, together: Sequence[Recording], shape: Shape, device: Device, card: Card
) -> Load:
    """What the rest of the card leaves to the multiprocessors that replay some recordings.

    Each gets at least its equal part of the card's rates, and a larger one where it has a larger
    part of the bytes: it goes on when others have ended. Where L2 has time to spare, who asks gets
    more, at most what a multiprocessor's port takes.

    Args:
        sample: of the launch.
        together: the recordings that a group of multiprocessors replays, all of them.
        shape: the grid.
        device: the device.
        card: how the rest of it is.

    """
    allocations = traffic.allocations(sample.recordings, shape.clusters)
    lost = [0.0 if card.is_warm else traffic.missing(each, device) for each in allocations]
    kept = [traffic.stored(each) for each in allocations]
    parts = [
        _part(sample.recordings, together, shape, weights)
        for weights in ((lost, kept), ([1.0] * len(lost), [0.0] * len(lost)))
    ]
    of_card = device.hbm_tbs, device.l2_tbs
    hbm, ingest = (
        _rate(rate * BYTES_PER_KILOBYTE / card.clock_ghz * part, spare, device.ingest)
        for rate, part, spare in zip(of_card, parts, (0.0, card.spare_l2), strict=True)
    )
    return Load(
        hbm=hbm,
        ingest=ingest,
        missing=tuple(lost),
        cold=tuple(
            0.0 if card.is_warm else max(traffic.cold(each), part)
            for each, part in zip(allocations, lost, strict=True)
        ),
        stored=tuple(kept),
        pace=shape.busy * device.cta_pace,
        faster=card.faster,
    )


def _rate(share: float, spare: float, port: float) -> float:
    """Bytes a cycle: between the share and the port, by what the card has to spare."""
    return min(share, port) + max(port - share, 0.0) * spare


Weights = tuple[Sequence[float], Sequence[float]]
"""By allocation, what a byte read counts, and a byte written."""


def _part(
    recordings: Sequence[Recording], together: Sequence[Recording], shape: Shape, weights: Weights
) -> float:
    """The part of a card's rate that a multiprocessor of a group gets."""
    of_all = sum(
        _moved(one, weights) * traffic.stands(one, recordings, shape.clusters) for one in recordings
    )
    equal = 1 / shape.busy
    if shape.waves > 1 or not of_all:
        return equal
    of_each = sum(_moved(one, weights) for one in together) / shape.cluster
    return max(of_each / of_all, equal)


def _moved(recording: Recording, weights: Weights) -> float:
    """Bytes of a recording, weighted by allocation."""
    return sum(
        of.read * read + of.written * written
        for of, read, written in zip(recording.traffic, *weights, strict=True)
    )
