"""Write docs/blackwell.md from results/predicted*.json: `python -m benchmarks.predict.page`.

`compare.py` writes those files. Nothing is predicted here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.predict.blind import blind
from benchmarks.predict.prose import CANNOT, ON_BLACKWELL, ON_HOPPER, TOP
from benchmarks.predict.sums import Row, groups
from benchmarks.predict.tables import axes, band, part, percent, ranked, short, table, time

ROOT = Path(__file__).parents[2]
RESULTS, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "blackwell.md"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(RESULTS))


def page(results: Path) -> str:
    """docs/blackwell.md."""
    files = {
        path.name.removesuffix(".json").removeprefix("predicted"): json.loads(path.read_text())
        for path in results.glob("predicted*.json")
    }
    parts = [TOP, *_compared(files), *blind(files), *_ours(files), *_choices(files), CANNOT]
    return "\n".join(parts)


Files = Mapping[str, Mapping[str, Any]]


def _compared(files: Files) -> Iterator[str]:
    """Both devices that somebody measured."""
    if hopper := files.get(".h200"):
        yield f"## Measured and predicted on an H200\n\n{ON_HOPPER}\n{_told(hopper)}\n"
        yield _families(hopper, "kernel")
        if tuned := files.get("_tuned.h200"):
            pairs = tuned["sums"]["pairs"]
            yield (
                f"Variants of one problem, of which an H200 measured each: {pairs['right']} of "
                f"{pairs['all']} pairs are ranked right ({part(pairs)}), with a mean error of "
                f"{percent(tuned['sums']['mean'])}.\n"
            )
    if blackwell := files.get(".b200"):
        yield f"## Published and predicted on a B200\n\n{ON_BLACKWELL}\n{_told(blackwell)}\n"
        yield _families(blackwell, "family")
        yield (
            "[points.toml](../benchmarks/predict/points.toml) has each source, and how it was "
            "measured. Times in µs; *held out* as above.\n"
        )
        yield _points(blackwell["points"])


def _told(file: Mapping[str, Any]) -> str:
    """What all points of a file amount to."""
    sums = file["sums"]
    fitted, out, pairs, bounds = (sums[word] for word in ("fitted", "held_out", "pairs", "bounds"))
    words = [
        (
            f"{sums['points']} points: mean error **{percent(sums['mean'])}**, "
            f"{percent(fitted.get('mean'))} of the fitted ones, "
            f"**{percent(out.get('mean'))}** of the {out['points']} held out."
        ),
        f"Worst: {_worst(sums['worst'])}.",
    ]
    if pairs["all"]:
        words.append(
            f"Of {pairs['all']} pairs of variants of one problem whose times differ by more than "
            f"3 %, {pairs['right']} are ranked right ({part(pairs)})."
        )
    if bounds["stated"]:
        words.append(
            f"Of {bounds['stated']} points for which a source or arithmetic says what binds, "
            f"{bounds['right']} are named so."
        )
    if sums["banded"]:
        words.append(f"{sums['in_band']} of {sums['banded']} times are within their band.")
    return "\n".join(words)


def _worst(worst: Mapping[str, Any]) -> str:
    name = worst["name"].replace("|", ", ")
    return f"{worst['family']}, {name}: {percent(worst['error'])} ({worst['binds']} binds)"


def _families(file: Mapping[str, Any], word: str) -> str:
    rows = [
        [
            f"`{name}`",
            told["points"],
            percent(told["mean"]),
            percent(told["lean"]),
            f"{percent(told['worst']['error'])}: {short(told['worst']['name'])}",
            told["worst"]["binds"],
            ranked(told["pairs"]),
        ]
        for name, told in file["sums"]["families"].items()
    ]
    return table([word, "points", "mean error", "lean", "worst", "binds", "pairs right"], rows)


def _points(points: Iterable[Row]) -> str:
    rows = [
        [
            row["family"],
            short(row["name"]),
            time(row["measured"]),
            time(row["predicted"]),
            band(row),
            percent(row["error"]),
            row["binds"],
            "yes" if row["held_out"] else "",
        ]
        for row in points
    ]
    heads = ["family", "problem", "published", "predicted", "band", "error", "binds", "held out"]
    return table(heads, rows)


def _ours(files: Files) -> Iterator[str]:
    """Our kernels, by the shapes of docs/performance.md."""
    ours = files.get("_ours.b200")
    if not ours or not ours["points"]:
        return
    hopper = files.get(".h200", {"points": []})["points"]
    measured = {(row["family"], row["name"]): row["measured"] for row in hopper}
    yield (
        "## Our kernels on a B200\n\nThe shapes of [performance.md](performance.md), in µs; *H200* "
        "is what was measured there.\nOf decode attention, with its combine, that number of splits "
        "which is predicted to be the best,\nand on an H200 the best measured. LoRA's arrays "
        "hold several sets of adapters, as in that benchmark;\nwith one set a launch takes up to 6 "
        "% less.\n"
    )
    for kernel, rows in groups(ours["points"], "family").items():
        yield f"### {kernel}\n"
        yield table(
            ["shape", "predicted", "band", "binds", "most of the path", "clock, GHz", "H200"],
            [
                [
                    row["name"],
                    f"**{time(row['predicted'])}**",
                    band(row),
                    row["binds"],
                    (row["path"] or ["\N{EN DASH}"])[0],
                    f"{row['clock_ghz']:.2f}",
                    _best(measured, kernel, row["problem"]),
                ]
                for row in _fastest(rows)
            ],
        )


def _fastest(rows: Iterable[Row]) -> list[Row]:
    """Of each problem the variant that is predicted to be the fastest."""
    return [min(of, key=lambda row: row["predicted"]) for of in groups(rows, "problem").values()]


def _best(measured: Mapping[tuple[str, str], float], kernel: str, problem: str) -> str:
    times = [
        took
        for (family, name), took in measured.items()
        if family == kernel and name.partition(" splits ")[0] == problem
    ]
    return time(min(times)) if times else "\N{EN DASH}"


def _choices(files: Files) -> Iterator[str]:
    """What selection takes, beside what is predicted to be the fastest."""
    told = files.get("_choices.b200")
    if not told or not told["points"]:
        return
    yield (
        "## What selection takes on a B200\n\nA manifest's `cost` chooses. Beside its choice the "
        "variant that is predicted to be the fastest;\n*loss* is what the choice costs by this "
        "model.\n"
    )
    rows = []
    for kernel, points in groups(told["points"], "family").items():
        for problem, of in groups(points, "problem").items():
            taken = min(of, key=lambda row: (row["cost"], row["name"]))
            best = min(of, key=lambda row: row["predicted"])
            loss = taken["predicted"] / best["predicted"] - 1
            cells = [kernel, problem, axes(taken), time(taken["predicted"])]
            rows.append([*cells, axes(best), time(best["predicted"]), percent(loss)])
    yield table(["kernel", "problem", "taken", "µs", "fastest", "µs", "loss"], rows)


if __name__ == "__main__":
    main()
