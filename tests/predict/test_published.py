"""The published times: each agrees with its source's own unit and has a program to run."""

import math
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


def operations(family: str, arguments: str) -> float:
    """Of a product, square or not; of attention, half of them where it is causal."""
    if family == "cutlass_nvfp4":
        return 2 * math.prod(int(word) for word in arguments.split())
    if family != "flash_attention_4":
        return 2 * int(arguments.rsplit(maxsplit=1)[-1]) ** 3
    dim, causal, batch, heads, tokens = (int(word) for word in arguments.split())
    return 4 * batch * heads * tokens**2 * dim / (1 + causal)


def test_there_are_enough():
    """At least twenty points of at least four programs."""
    assert len(POINTS) >= 20
    assert len({point.family for point in POINTS}) >= 4


@pytest.mark.parametrize(("family", "point"), RATES)
def test_microseconds_of_a_rate(family, point):
    """The operations of the problem at that rate."""
    meant = operations(family, point["arguments"]) / point["tflops"] / 1e6
    assert point["us"] == pytest.approx(meant, rel=1e-3)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: f"{point.family} {point.problem}")
def test_the_readme_builds_the_program(point):
    """What a command runs is what the commands beside the programs make."""
    readme = (FOLDER / "programs" / "README.md").read_text()
    built = next(word for word in point.command if word.startswith("built/"))
    level = re.sub(r"_\d\d$", "_$level", Path(built).name)
    assert f"$O/{level}" in readme
