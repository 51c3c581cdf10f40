"""`cost` in manifests beside the times that variants' own PTX predicts for a B200.

`benchmarks/predict/choices.py` has the problems. Where selection loses more than a tenth by the
model, the manifest names the problem and says why its cost stands.
"""

import json
from functools import cache
from pathlib import Path

import pytest

from benchmarks.predict import choices, page
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load

MANIFESTS = Path(__file__).parents[2] / "manifests"
RESULT = page.RESULTS / "predicted_choices.b200.json"
LOSS = 0.1
POINTS = json.loads(RESULT.read_text())["points"]
PROBLEMS = sorted({(row["family"], row["problem"]) for row in POINTS})


@cache
def listed(kernel: str) -> dict[str, list[choices.Choice]]:
    """The choices that the manifest as it is leaves, by problem; the cheapest first."""
    found: dict[str, list[choices.Choice]] = {}
    for one in choices.of_kernel(kernel, expand(load(MANIFESTS / f"{kernel}.yaml"))):
        found.setdefault(one.problem, []).append(one)
    return found


def predicted(kernel: str, problem: str) -> dict[str, float]:
    """Microseconds by variant."""
    return {
        row["name"].removeprefix(f"{problem}|"): row["predicted"]
        for row in POINTS
        if (row["family"], row["problem"]) == (kernel, problem)
    }


@pytest.mark.parametrize(("kernel", "problem"), PROBLEMS)
def test_selection_is_near_the_fastest(kernel, problem):
    """Or the manifest says why not."""
    times = predicted(kernel, problem)
    taken = listed(kernel)[problem][0].variant.id
    if times[taken] > (1 + LOSS) * min(times.values()):
        assert problem in (MANIFESTS / f"{kernel}.yaml").read_text(), (taken, times)


@pytest.mark.parametrize(("kernel", "problem"), PROBLEMS)
def test_every_variant_that_is_near_was_predicted(kernel, problem):
    """Run `samples choices` and `compare choices` after a change of the variants."""
    assert {one.variant.id for one in listed(kernel)[problem]} == set(predicted(kernel, problem))


def test_both_kernels_are_there():
    """With several problems each."""
    for kernel in choices.PROBLEMS:
        assert sum(name == kernel for name, _ in PROBLEMS) >= 4
