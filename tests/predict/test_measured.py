"""The measured points: each has its time from the results, and calls that choose what ran."""

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.predict import flashmla
from benchmarks.predict.measured import RESULTS, decode, points
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.predict.planned import PlannedLibrary
from kernelpack.spec.arch import Arch
from tests.fakes.bundles import write_bundle

ROOT = Path(__file__).parents[2]
POINTS = tuple(points())
SMALL = 20
"""Microseconds: calls of shorter kernels have arrays that a test may make."""
OF_EXAMPLES = ("rms_norm", "silu_mul_fp8")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Every kernel for Hopper, its machine code made up."""
    examples = [ROOT / f"examples/kernels/{stem}/{stem}.yaml" for stem in OF_EXAMPLES]
    found = [load(path) for path in (*sorted((ROOT / "manifests").glob("*.yaml")), *examples)]
    hopper = Arch("sm_90a")
    variants = [v for each in found if hopper in each.targets for v in expand(each, [hopper])]
    path = tmp_path_factory.mktemp("measured") / "hopper.kpk"
    return PlannedLibrary(write_bundle(path, variants), arch="sm_90a")


def test_every_row_of_the_results_is_a_point():
    """A shape that is measured and forgotten here would leave the comparison."""
    rows = Counter()
    for path in {point.source for point in POINTS}:
        facts = json.loads((RESULTS / path).read_text())
        rows[path] = sum(len(facts.get(part, ())) for part in ("shapes", "ends", "steps"))
    rows["nvfp4_grouped_gemm.h200.json"] *= 2  # two kernels a row
    assert rows == Counter(point.source for point in POINTS)


def test_points_are_told_apart():
    """No two points have one kernel and name."""
    assert [
        n for n, count in Counter((p.kernel, p.name) for p in POINTS).items() if count > 1
    ] == []


def test_all_splits_of_decode_attention_have_their_times():
    """Five numbers of splits of a shape are five points."""
    first = [point.microseconds for point in decode(RESULTS, all_splits=True)][:5]
    assert first == [107.4, 59.36, 34.35, 23.39, 18.57]


@pytest.mark.parametrize(
    "point", [p for p in POINTS if p.microseconds < SMALL], ids=lambda p: f"{p.kernel} {p.name}"
)
def test_a_call_chooses_what_ran(point, library):
    """The first launch is the variant that the benchmark noted, or at least one of the kernel."""
    point.call(library)
    first, *_ = noted = library.noted
    library.noted = []
    assert point.variant in ("", first.variant.id)
    assert point.kernel in ("mla_decode_fp8", first.variant.kernel)
    assert all(launch.sizes["sm_count"] == 132 for launch in noted)


def test_flashmla_pads_heads_and_all_its_points_are_there():
    """It takes 64 heads or 128; of decode attention two shapes are of e4m3 and have no program."""
    found = list(flashmla.points(Path()))
    rows = [json.loads((RESULTS / path).read_text()) for path in sorted({p.source for p in found})]
    assert len(found) == sum(len(facts["shapes"]) for facts in rows) - 2
    assert {point.command[2] for point in found} == {"64", "128"}
