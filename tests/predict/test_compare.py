"""Rows of many recordings: which file of a point counts, and what is replayed once."""

from types import SimpleNamespace

import pytest

from benchmarks.predict import compare, row
from benchmarks.predict.samples import Saved
from kernelpack.predict import device

H200 = device.find("h200")


def test_the_last_folder_counts(tmp_path):
    """A point that was recorded again is one point still; others stay."""
    first, last = tmp_path / "z", tmp_path / "a"
    for path in (first / "gemm.pkl.xz", first / "norm.pkl.xz", last / "gemm.pkl.xz"):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert compare.merged([first, last]) == [last / "gemm.pkl.xz", first / "norm.pkl.xz"]


@pytest.fixture
def replayed(monkeypatch):
    """The launches that were replayed, each of which takes 3 microseconds."""
    found = []

    def once(samples, _to, *, with_band, is_warm):
        found.append((samples, with_band, is_warm))
        return {"predicted": 3.0 * len(samples)}

    monkeypatch.setattr(row, "_known", {})
    monkeypatch.setattr(row, "_of_launches", once)
    return found


@pytest.mark.parametrize(
    ("banded", "with_band"), [(0, []), (100, ["short"]), (1000, ["long", "short"])]
)
def test_long_recordings_have_no_band(tmp_path, monkeypatch, banded, with_band):
    """Its replays are the longest."""
    for name in ("short", "long"):
        (tmp_path / f"{name}.pkl.xz").touch()

    def load(path):
        name = path.name.partition(".")[0]
        return SimpleNamespace(name=name, key=name, steps={"short": 99, "long": 100}[name])

    def predicted(one, _to, *, with_band, is_warm):
        assert not is_warm
        words = ("family", "measured", "predicted", "error", "binds")
        return dict.fromkeys(words, "") | {"name": one.name, "band": with_band}

    monkeypatch.setattr(compare.samples, "load", load)
    monkeypatch.setattr(compare, "predicted", predicted)
    monkeypatch.setattr(compare, "completed", list)
    found = compare.rows([tmp_path], H200, 1, banded=banded)
    assert [one["name"] for one in found if one["band"]] == with_band


def saved(name, microseconds, samples):
    return Saved(key=f"gemm|{name}", microseconds=microseconds, samples=samples)


def test_one_launch_of_two_points_is_replayed_once(replayed):
    """Each has its own name, time and error."""
    points = saved("h 8", 2.0, ["same"]), saved("h 16", 4.0, ["same"])
    rows = [row.predicted(one, H200, with_band=False) for one in points]
    assert [(one["name"], one["error"]) for one in rows] == [("h 8", 0.5), ("h 16", -0.25)]
    assert len(replayed) == 1


def test_other_launches_devices_and_bands_are_replayed(replayed):
    """What differs in any of them is none that is known."""
    point = saved("h 8", 2.0, ["same"])
    row.predicted(point, H200, with_band=False)
    row.predicted(point, H200, with_band=True)
    row.predicted(point, device.find("b200"), with_band=False)
    row.predicted(saved("h 8", 2.0, ["other"]), H200, with_band=False)
    row.predicted(point, H200, with_band=False, is_warm=True)
    assert len(replayed) == 5


def test_nobody_measured_it(replayed):
    """Then there is no error."""
    assert row.predicted(saved("m 8", None, ["x"]), H200, with_band=True)["error"] is None
    assert replayed == [(["x"], True, False)]
