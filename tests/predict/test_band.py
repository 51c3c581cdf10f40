"""How sure a prediction is, and what binds."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kernelpack.predict import band
from kernelpack.predict.device import find


@pytest.mark.parametrize(
    ("busy", "word"),
    [({"HBM": 0.85, "issue": 0.9}, "issue"), ({"HBM": 0.3, "issue": 0.5}, band.LATENCY)],
)
def test_binds(busy, word):
    """The busiest unit, if it is busy most of the time."""
    assert band.binds(SimpleNamespace(busy=busy)) == word


def times(monkeypatch, of):
    monkeypatch.setattr(
        band, "estimate", lambda _, device: SimpleNamespace(microseconds=of(device))
    )
    return band.band(None, find("b200"))


def test_band_of_latency(monkeypatch):
    """Later answers take longer."""
    found = times(monkeypatch, lambda device: device.copy_l2)
    assert found.low < found.middle == find("b200").copy_l2 < found.high


def test_band_of_a_rate(monkeypatch):
    """More bytes a cycle take less time."""
    found = times(monkeypatch, lambda device: 1 / device.ingest)
    assert found.low < found.middle < found.high


def test_no_clock_is_above_the_light_one(monkeypatch):
    """A device whose clock no power limits has none that is faster."""
    device = replace(find("b200"), clock_full_ghz=1.9)
    seen = []
    monkeypatch.setattr(
        band, "estimate", lambda _, one: seen.append(one) or SimpleNamespace(microseconds=1)
    )
    band.band(None, device)
    assert max(one.clock_full_ghz for one in seen) == device.clock_ghz
