"""The published times: each agrees with its source's own unit and has a program to run."""

import re
import tomllib
from pathlib import Path

import pytest

from benchmarks.predict import published

FOLDER = Path(published.__file__).parent
FAMILIES = tomllib.loads((FOLDER / "points.toml").read_text())
POINTS = tuple(published.points(Path("built")))
RATES = [
    (family, point)
    for family, told in FAMILIES.items()
    for point in told["points"]
    if "tflops" in point
]


def test_there_are_enough():
    """At least twenty points of at least four programs."""
    assert len(POINTS) >= 20
    assert len({point.family for point in POINTS}) >= 4


@pytest.mark.parametrize(("family", "point"), RATES)
def test_microseconds_of_a_rate(family, point):
    """Of a square product: 2 n³ operations at that rate."""
    side = int(point["arguments"].split()[-1])
    assert point["us"] == pytest.approx(2 * side**3 / point["tflops"] / 1e6, rel=1e-3), family


@pytest.mark.parametrize("point", POINTS, ids=lambda point: f"{point.family} {point.problem}")
def test_the_readme_builds_the_program(point):
    """What a command runs is what the commands beside the programs make."""
    readme = (FOLDER / "programs" / "README.md").read_text()
    built = next(word for word in point.command if word.startswith("built/"))
    level = re.sub(r"_\d\d$", "_$level", Path(built).name)
    assert f"$O/{level}" in readme
