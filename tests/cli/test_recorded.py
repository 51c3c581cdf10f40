"""How far the recording of a launch is, in words."""

import pytest

from kernelpack.cli import recorded
from kernelpack.cli.recorded import Recorded


class Clock:
    """A second passes with each look at it."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1
        return self.now


def test_clusters_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer instructions than before are those of the next cluster."""
    monkeypatch.setattr(recorded, "time", Clock())
    said: list[str] = []
    watch = Recorded(said.append)
    for steps in (1000, 25_000, 1000):
        watch.look(steps, str)
    assert said == [
        "cluster 1, 1,000 warp instructions",
        "cluster 1, 25,000 warp instructions",
        "cluster 2, 1,000 warp instructions",
    ]


def test_not_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator shows a run far more often than a person reads."""
    clock = Clock()
    monkeypatch.setattr(recorded, "time", clock)
    said: list[str] = []
    watch = Recorded(said.append)
    clock.now -= 1
    watch.look(1000, str)
    assert said == []
