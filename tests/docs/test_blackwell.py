"""docs/blackwell.md is what its generator makes of the results, and says what they say."""

import json

import pytest

from benchmarks.predict import page
from benchmarks.predict.tables import axes, percent, short

FILES = {path.name: json.loads(path.read_text()) for path in page.RESULTS.glob("predicted*.json")}
POINTS = {"family": "gemm", "waves": 1, "held_out": False, "clock_ghz": 1.9, "cost": 1}


def test_page_is_current():
    """Run `python -m benchmarks.predict.page` after a change."""
    assert page.PAGE.read_text() == page.page(page.RESULTS)


def test_results_are_there():
    """Both devices that somebody measured, and ours."""
    assert {"predicted.h200.json", "predicted.b200.json", "predicted_ours.b200.json"} <= set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_no_replay_is_stuck(name):
    """A replay in which a warp waits for ever is none of its recording."""
    assert [row["name"] for row in FILES[name]["points"] if row["stuck"]] == []


def test_choice_beside_the_fastest(tmp_path):
    """Selection takes the least cost, the model the least time."""
    points = [
        {**POINTS, "name": "m 8|k[arch=a,tile_n=8]", "problem": "m 8", "predicted": 2.0, "cost": 1},
        {**POINTS, "name": "m 8|k[arch=a,tile_n=9]", "problem": "m 8", "predicted": 1.0, "cost": 5},
    ]
    told = json.dumps({"points": points})
    (tmp_path / "predicted_choices.b200.json").write_text(told)
    assert "| gemm | m 8 | n=8 | 2.0 | n=9 | 1.0 | 100.0 % |" in page.page(tmp_path)


def test_names():
    """A table has the words that tell points apart."""
    assert short("bf16 4096|learn_cuda v1a 4096 4096 4096") == "bf16 4096, v1a"
    assert short("128 heads, 512 tokens|flashmla_sm100 128 512") == "128 heads, 512 tokens"
    assert axes({"name": "m 8|k[arch=a,tile_n=8,tile_m=16]"}) == "n=8 m=16"


def test_signs():
    """An error below zero has a sign that is one character wide."""
    assert (percent(-0.051), percent(0.2), percent(None)) == (
        "\N{MINUS SIGN}5.1 %",
        "20.0 %",
        "\N{EN DASH}",
    )
