"""The part of docs/blackwell.md about points that were predicted before anybody fitted on them.

`results/predicted.blind*.json` have their rows, each written once: the model of the commit that it
names predicted each as soon as it was recorded.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.predict.sums import Row, errors, groups
from benchmarks.predict.tables import percent, short, table

Files = Mapping[str, Mapping[str, Any]]
NOT_KEPT = "A dash under *today*: nobody has predicted these points since, or it was not kept.\n"
HEADS = ("of", "kernel", "points", "mean error", "lean", "worst", "today")
KINDS = {
    "h200": ("H200", ".h200"),
    "tuned": ("H200, variants", "_tuned.h200"),
    "b200": ("B200", ".b200"),
}
"""Of each kind what the table calls it, and the file of today's predictions."""


def blind(files: Files) -> Iterator[str]:
    """A table by kind and kernel, with the error of today's model on the same points."""
    kept = [told for name, told in sorted(files.items()) if name.startswith(".blind")]
    if kept:
        yield "## Predicted blind\n"
    for told in kept:
        yield f"{told['words']}\n"
        yield table(HEADS, list(_rows(told["points"], files)))
        if not all(KINDS[row["kind"]][1] in files for row in told["points"]):
            yield NOT_KEPT


def _rows(points: Sequence[Row], files: Files) -> Iterator[list[object]]:
    for kind, of_kind in groups(points, "kind").items():
        title, file = KINDS[kind]
        now = {_key(row): row for row in files.get(file, {"points": ()})["points"]}
        for family, of in groups(of_kind, "family").items():
            yield [title, f"`{family}`", *_cells(of, now)]
        yield [title, "**all**", *_cells(of_kind, now)]


def _key(row: Row) -> tuple[str, str]:
    return row["family"], row["name"]


def _cells(points: Sequence[Row], now: Mapping[tuple[str, str], Row]) -> list[object]:
    told = errors(points)
    today = errors([now[_key(row)] for row in points if _key(row) in now])
    return [
        told["points"],
        f"**{percent(told['mean'])}**",
        percent(told["lean"]),
        f"{percent(told['worst']['error'])}: {short(told['worst']['name'])}",
        percent(today.get("mean")),
    ]
