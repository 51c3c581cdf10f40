"""A point's row of predicted*.json: what was measured, what is predicted, and why."""

import pickle
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from benchmarks.predict.samples import Saved
from kernelpack.predict.device import Device
from kernelpack.predict.estimate import Estimate, estimate
from kernelpack.predict.gains import gains
from kernelpack.predict.prediction import Prediction, bound_of, full_units, predict
from kernelpack.predict.sample import Sample

Told = dict[str, Any]
_known: dict[tuple[bytes, Device, bool, bool], Told] = {}
"""What is predicted of launches: several points may be one launch, as of heads that are padded."""


def predicted(saved: Saved, to: Device, *, with_band: bool, is_warm: bool = False) -> Told:
    """The row of a point."""
    family, name = saved.key.split("|", 1)
    told = _once(saved.samples, to, with_band=with_band, is_warm=is_warm)
    total = told["predicted"]
    return {
        "family": family,
        "name": name,
        "problem": problem_of(name),
        "measured": saved.microseconds,
        "error": round(total / saved.microseconds - 1, 4) if saved.microseconds else None,
        **told,
    }


def problem_of(name: str) -> str:
    """What points share that are variants of one another: all before the last word of a name."""
    return name.rpartition("|")[0] if "|" in name else name.partition(" splits ")[0]


def _once(samples: Sequence[Sample], to: Device, *, with_band: bool, is_warm: bool) -> Told:
    """What is predicted of launches, replayed once."""
    key = sha256(pickle.dumps(samples)).digest(), to, with_band, is_warm
    if key not in _known:
        _known[key] = _of_launches(samples, to, with_band=with_band, is_warm=is_warm)
    return _known[key]


def _of_launches(samples: Sequence[Sample], to: Device, *, with_band: bool, is_warm: bool) -> Told:
    """What is predicted of launches that follow one another."""
    bands = [predict(one, to, is_warm=is_warm) for one in samples] if with_band else []
    found = [one.estimate for one in bands]
    found = found or [estimate(one, to, is_warm=is_warm) for one in samples]
    longest = max(found, key=lambda one: one.microseconds)
    return {
        "predicted": round(sum(one.microseconds for one in found), 3),
        "low": round(sum(one.low for one in bands), 3) if bands else None,
        "high": round(sum(one.high for one in bands), 3) if bands else None,
        "binds": _bound(samples[found.index(longest)], longest, to),
        "path": _path(bands),
        **_worked(longest),
        "launches": len(found),
        "stuck": any(one.replay.stuck for one in found),
    }


def _bound(sample: Sample, found: Estimate, to: Device) -> str:
    """What binds; the launch is replayed with faster units only where that decides it."""
    is_clear = len(full_units(found)) == 1
    return bound_of(found, to, {} if is_clear else gains(sample, to, found))


def _worked(longest: Estimate) -> Told:
    """What the longest launch kept busy, and at which clock."""
    return {
        "busy": {name: round(part, 3) for name, part in _busiest(longest.busy)},
        "clock_ghz": round(longest.clock_ghz, 3),
        "waves": round(longest.shape.waves, 3),
    }


def _path(bands: Sequence[Prediction]) -> list[str]:
    """What most of the longest launch's critical path went to."""
    if not bands:
        return []
    return [str(share) for share in max(bands, key=lambda one: one.middle).shares[:3]]


def _busiest(busy: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(busy.items(), key=lambda one: -one[1])[:3]
