"""Predict every recorded point, and write what was measured beside it.

    .venv/bin/python -m benchmarks.predict.compare KIND FOLDER… [--jobs N] [--band [STEPS]]

`kinds.py` has the kinds, and `samples.py` fills the folders. Writes
benchmarks/results/predicted*.json, from which `page.py` makes docs/blackwell.md. Of a point that
several folders have, the last one's recording counts. A band takes twice as long as the middle
alone, so STEPS limits it to points whose recordings have fewer warp instructions.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from benchmarks.predict import choices, measured, published, samples, sums
from benchmarks.predict.row import Told, predicted
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.predict import device
from kernelpack.predict.device import Device

RESULTS = Path(__file__).parents[1] / "results"
MANIFESTS = Path(__file__).parents[2] / "manifests"
FILES = {
    "h200": ("h200", "predicted.h200.json", "every time measured on an H200, ours and FlashMLA's"),
    "tuned": ("h200", "predicted_tuned.h200.json", "times of variants that an H200 tuned over"),
    "b200": ("b200", "predicted.b200.json", "times that others published for a B200"),
    "ours": ("b200", "predicted_ours.b200.json", "our kernels on a B200, which nobody measured"),
    "choices": ("b200", "predicted_choices.b200.json", "variants for sm_100a of some problems"),
}
"""Of each kind the device, the file and what it is about."""
COPY = 0.8
"""A copy of the same bytes that takes this part of a time shows that memory bounds it."""


def stated() -> dict[tuple[str, str], str]:
    """What binds a point, where a source or arithmetic says so: by family, and by its beginning."""
    found = {(p.family, p.name): p.binds for p in published.points(Path())}
    for benchmark in measured.OF:
        for point in benchmark(measured.RESULTS):
            if point.copy and point.copy >= COPY * point.microseconds:
                found[point.kernel, point.name] = "HBM"
    return found


def rows(folders: Iterable[Path], to: Device, jobs: int, *, banded: int) -> list[Told]:
    """All rows of some folders."""
    with ProcessPoolExecutor(jobs) as pool:
        found = list(pool.map(partial(_try, to=to, banded=banded), merged(folders)))
    return completed([row for row in found if row])


def merged(folders: Iterable[Path]) -> list[Path]:
    """Each point's file once: of those of one name that of the last folder."""
    found = {path.name: path for folder in folders for path in folder.glob("*.pkl.xz")}
    return [path for _, path in sorted(found.items())]


def completed(told: list[Told]) -> list[Told]:
    """Rows with what depends on all of them, or on files of others, by family and name."""
    known = stated()
    for row in told:
        point = row["family"], row["name"]
        row["held_out"] = sums.held_out(*point)
        row["stated"] = known.get(point, "")
        if row["measured"] is None:
            row["cost"] = _costs().get(point)
    return sorted(told, key=lambda row: (row["family"], row["name"]))


@cache
def _costs() -> dict[tuple[str, str], float]:
    """What selection counts of each choice, by the manifests as they are."""
    return {
        (one.kernel, f"{one.problem}|{one.variant.id}"): one.cost
        for kernel in choices.PROBLEMS
        for one in choices.of_kernel(kernel, expand(load(MANIFESTS / f"{kernel}.yaml")))
    }


@cache
def _warm() -> frozenset[str]:
    """The keys of points whose inputs are in L2 when they are measured."""
    return frozenset(one.key for one in published.points(Path()) if one.is_warm)


def _try(path: Path, to: Device, *, banded: int) -> Told | None:
    """A row, or None and a word about it: of one point in hundreds the others are worth having."""
    try:
        saved = samples.load(path)
        is_warm = saved.key in _warm()
        row = predicted(saved, to, with_band=saved.steps < banded, is_warm=is_warm)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        print(f"{path.name}: {error!r}", file=sys.stderr, flush=True)
        return None
    told = row["measured"], row["predicted"], row["error"]
    print(row["family"], row["name"], *told, row["binds"], flush=True)
    return row


def main() -> None:
    """Write the file of a kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=list(FILES))
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--band", nargs="?", type=int, const=sys.maxsize, default=0, metavar="STEPS"
    )
    given = parser.parse_args()
    to = device.find(FILES[given.kind][0])
    write(given.kind, to, rows(given.folders, to, given.jobs, banded=given.band))


def write(kind: str, to: Device, found: list[Told]) -> None:
    """Write a kind's rows, and what they amount to where somebody measured them."""
    _, file, about = FILES[kind]
    told = {
        "what": about,
        "command": f"python -m benchmarks.predict.compare {kind} FOLDER",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": to.title,
        **({"sums": sums.sums(found)} if kind not in ("ours", "choices") else {}),
        "points": found,
    }
    (RESULTS / file).write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
