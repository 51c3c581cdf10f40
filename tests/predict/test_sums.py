"""What predictions amount to: which points are held out, errors, ranked pairs, named bounds."""

import tomllib
from pathlib import Path

import pytest

from benchmarks.predict import compare, kinds, sums
from benchmarks.predict import row as row_of

NOWHERE = kinds.Places(bundle=Path("x"), own=Path("y"), programs=Path("z"))


def row(name: str, measured: float, predicted: float, **given: object) -> dict[str, object]:
    return {
        "family": "gemm",
        "name": name,
        "problem": "4096",
        "measured": measured,
        "predicted": predicted,
        "error": predicted / measured - 1,
        "low": predicted * 0.9,
        "high": predicted * 1.1,
        "binds": "HBM",
        "stated": "",
        "held_out": False,
        **given,
    }


def test_what_is_recorded_moves_no_point():
    """A point is fitted or held out whether others are there or not."""
    names = ["rows 1 width 1024 bfloat16", "rows 1 width 4096 bfloat16", "rows 7 width 9 new"]
    rows = [row(name, 10, 11, family="rms_norm") for name in names]
    found = {one["name"]: one["held_out"] for one in compare.completed(rows)}
    assert list(found.values()) == [False, True, True]
    for one in rows:
        others = compare.completed([other for other in rows if other is not one])
        assert all(found[other["name"]] == other["held_out"] for other in others)


@pytest.mark.parametrize("kind", ["h200", "b200"])
def test_half_are_held_out(kind):
    """Of all points that there are, recorded or not."""
    points = [one.key.split("|", 1) for one in kinds.everything(kind, NOWHERE)]
    out = [point for point in points if sums.held_out(*point)]
    assert 2 * len(out) >= len(points) > len(out)


def test_what_is_fitted_exists():
    """A name that is no point's would hold out the one that it means."""
    known = {one.key for kind in ("h200", "b200") for one in kinds.everything(kind, NOWHERE)}
    fitted = tomllib.loads(sums.FITTED.read_text())
    assert {f"{family}|{name}" for family, names in fitted.items() for name in names} <= known


def test_errors():
    """The mean is of sizes, the lean of signs; the worst is the largest either way."""
    told = sums.errors([row("a", 10, 11), row("b", 10, 7)])
    assert (told["mean"], told["lean"]) == (pytest.approx(0.2), pytest.approx(-0.1))
    assert told["worst"]["name"] == "b"
    assert (told["banded"], told["in_band"]) == (2, 1)


def test_no_points():
    """A family of one point has none held out."""
    assert sums.errors([]) == {"points": 0}


def test_pairs_of_one_problem():
    """Times that are near each other rank nothing, nor do those of different problems."""
    rows = [row("a", 10, 12), row("b", 10.2, 9), row("c", 20, 11), row("d", 5, 1, problem="8192")]
    assert sums.pairs(rows) == {"all": 2, "right": 1}


def test_bounds():
    """Those that nobody states do not count."""
    rows = [row("a", 1, 1, stated="HBM"), row("b", 1, 1, stated="latency"), row("c", 1, 1)]
    assert sums.bounds(rows) == {"stated": 2, "right": 1}


def test_fitted_and_held_out_are_all():
    """Each point is one or the other."""
    told = sums.sums([row("a", 1, 1), row("b", 1, 2, held_out=True)])
    assert (told["fitted"]["mean"], told["held_out"]["mean"], told["mean"]) == (0, 1, 0.5)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("bf16 4096|learn_cuda v0 4096", "bf16 4096"),
        ("bf16 h 8 B 8 splits 16", "bf16 h 8 B 8"),
        ("m 1 k 2", "m 1 k 2"),
    ],
)
def test_problem_of(name, problem):
    """Programs, and numbers of splits, are variants of one problem."""
    assert row_of.problem_of(name) == problem


def test_bounds_that_are_stated():
    """By a copy's time, and by points.toml, under the names that rows have."""
    known = compare.stated()
    assert known["lora_shrink_qkv", "m 8192 k 7168 n 16 g 8"] == "HBM"
    assert known["learn_cuda", "bf16 4096|learn_cuda v1a 4096 4096 4096"] == "TMA"
    assert ("lora_shrink_qkv", "m 16 k 7168 n 16 g 4") not in known
