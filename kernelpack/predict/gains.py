"""What a faster device would save: each kind of unit in turn twice as fast, or all latencies."""

from collections.abc import Mapping
from dataclasses import replace

from kernelpack.predict.device import Device
from kernelpack.predict.estimate import Estimate, on
from kernelpack.predict.grid import Card
from kernelpack.predict.sample import Sample

LATENCY = "latency"
LATENCIES = (
    "load_l2", "load_hbm", "load_shared", "copy_l2", "copy_hbm", "tensor_latency", "commit", "wake",
    "remote", "store", "cta_start",
)  # fmt: skip
"""Numbers of a device that are times, whatever is moved or computed."""
WORTH = 0.1
"""A part of the time that is worth naming."""


def gains(sample: Sample, device: Device, found: Estimate) -> Mapping[str, float]:
    """The part of a launch's cycles that go where one thing takes half as long, by what it is.

    That is a kind of unit, or `latency`: all latencies together. Half of the time in which a unit
    works is the most that can go; units that work too little for it to be worth naming are left
    out.
    """
    halved = {name: getattr(device, name) / 2 for name in LATENCIES}
    wanted = [name for name, part in found.busy.items() if part / 2 >= WORTH]
    cards = {name: replace(found.card, faster=name) for name in wanted}
    saved = {name: _gain(sample, device, card, found) for name, card in cards.items()}
    return {**saved, LATENCY: _gain(sample, replace(device, **halved), found.card, found)}


def _gain(sample: Sample, device: Device, card: Card, found: Estimate) -> float:
    return max(1 - on(sample, device, card).cycles / found.cycles, 0.0)
