"""What many predictions amount to: errors, how variants rank, which bounds are right.

A row is a point of `predicted.*.json`, as `compare.py` writes it.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import Any

Row = Mapping[str, Any]
FITTED = Path(__file__).parent / "fitted.toml"
APART = 0.03
"""Times that differ by less are of no order: runs differ by as much."""


def held_out(family: str, name: str) -> bool:
    """Whether no search for a number of `devices.toml` may see a point; `fitted.toml` has others.

    What is recorded, and what is not, has no part in it.
    """
    return name not in _fitted().get(family, ())


@cache
def _fitted() -> dict[str, list[str]]:
    return tomllib.loads(FITTED.read_text())


def groups(rows: Iterable[Row], word: str) -> dict[str, list[Row]]:
    """Rows by what they have under a word, in the order of the first of each."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[word], []).append(row)
    return found


def sums(rows: Sequence[Row]) -> dict[str, Any]:
    """Of all points, and of each family."""
    families = groups(rows, "family")
    return {
        **errors(rows),
        "fitted": errors([row for row in rows if not row["held_out"]]),
        "held_out": errors([row for row in rows if row["held_out"]]),
        "pairs": pairs(rows),
        "bounds": bounds(rows),
        "families": {name: errors(of) | {"pairs": pairs(of)} for name, of in families.items()},
    }


def errors(rows: Sequence[Row]) -> dict[str, Any]:
    """Mean and worst of what is not signed, the mean of what is, and how many are in their band."""
    if not rows:
        return {"points": 0}
    worst = max(rows, key=_size)
    banded = [row for row in rows if row["low"] is not None]
    return {
        "points": len(rows),
        "mean": round(mean(_size(row) for row in rows), 4),
        "lean": round(mean(row["error"] for row in rows), 4),
        "worst": {word: worst[word] for word in ("family", "name", "error", "binds")},
        "banded": len(banded),
        "in_band": sum(row["low"] <= row["measured"] <= row["high"] for row in banded),
    }


def _size(row: Row) -> float:
    return abs(float(row["error"]))


def pairs(rows: Iterable[Row]) -> dict[str, int]:
    """Pairs of variants of one problem whose times differ, and those that are ranked right."""
    of_one = (
        each for of in groups(rows, "family").values() for each in groups(of, "problem").values()
    )
    told = [
        (a["measured"] < b["measured"]) == (a["predicted"] < b["predicted"])
        for group in of_one
        for a, b in combinations(group, 2)
        if abs(a["measured"] - b["measured"]) > APART * min(a["measured"], b["measured"])
    ]
    return {"all": len(told), "right": sum(told)}


def bounds(rows: Iterable[Row]) -> dict[str, int]:
    """Points whose source, or arithmetic, says what binds, and those that are named so."""
    stated = [row for row in rows if row["stated"]]
    return {"stated": len(stated), "right": sum(row["stated"] == row["binds"] for row in stated)}
