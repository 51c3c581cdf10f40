"""Points that were predicted before they were seen, beside the model of today."""

import json

from benchmarks.predict import blind, compare, sums


def point(name: str, error: float, **given: object) -> dict[str, object]:
    row = {"family": "gemm", "name": name, "error": error, "binds": "HBM", "low": None}
    return row | {"kind": "h200"} | given


def test_table():
    """By kernel and over all; of today's model, those of its points that were blind then."""
    then = [point("a", 0.5), point("b", -0.3, family="norm"), point("v1", 0.1, kind="b200")]
    now = {"points": [point("a", 0.25), point("c", 9.0)]}
    files = {".blind": {"words": "Two.", "points": then}, ".h200": now}
    told = "".join(blind.blind(files))
    assert "| H200 | `gemm` | 1 | **50.0 %** | 50.0 % | 50.0 %: a | 25.0 % |" in told
    assert "| H200 | **all** | 2 | **40.0 %** | 10.0 % | 50.0 %: a | 25.0 % |" in told
    assert "| B200 | `gemm` | 1 | **10.0 %** | 10.0 % | 10.0 %: v1 | \N{EN DASH} |" in told


def test_each_test_has_its_words_and_its_table():
    """The first one first, under one title."""
    files = {
        name: {"words": words, "points": [point("a", 0.5)]}
        for name, words in ((".blind.2", "Later."), (".blind", "First."))
    }
    told = "".join(blind.blind(files))
    assert told.count("## Predicted blind") == 1
    assert told.count("| of | kernel |") == 2
    assert told.index("First.") < told.index("Later.")


def test_nothing_without_the_file():
    assert list(blind.blind({})) == []


def test_what_was_blind_stays_held_out():
    """A later search would make the table's column of today no test."""
    for path in compare.RESULTS.glob("predicted.blind*.json"):
        told = json.loads(path.read_text())
        assert told["points"]
        assert all(sums.held_out(row["family"], row["name"]) for row in told["points"])
