"""Recorded launches in a folder: recording takes long, so a second prediction only replays them.

    .venv/bin/python -m benchmarks.predict.samples KIND FOLDER [--jobs N] …

A file has a point's key, its time and its samples. What is there is not recorded again. `kinds.py`
says what each kind is.
"""

import argparse
import lzma
import pickle
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchmarks.predict.kinds import KINDS, Places, Wanted, everything
from kernelpack.predict.sample import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What a file has."""

    key: str
    microseconds: float | None
    samples: Sequence[Sample]

    @property
    def steps(self) -> int:
        """Warp instructions that were recorded, of all launches."""
        return sum(one.steps for sample in self.samples for one in sample.recordings)


def load(path: Path) -> Saved:
    """Read a file of a folder."""
    key, microseconds, samples = pickle.loads(lzma.decompress(path.read_bytes()))
    return Saved(key=key, microseconds=microseconds, samples=samples)


def save(folder: Path, wanted: Wanted) -> Path:
    """Record a point and write its file."""
    path = folder / f"{re.sub(r'[^0-9A-Za-z_]+', '_', wanted.key)}.pkl.xz"
    if not path.exists():
        told = (wanted.key, wanted.microseconds, wanted.record())
        path.write_bytes(lzma.compress(pickle.dumps(told), preset=1))
    return path


def _one(kind: str, places: Places, folder: Path, number: int) -> str:
    """In a process of its own: the point of a number, and a word about it."""
    wanted = list(everything(kind, places))[number]
    try:
        save(folder, wanted)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the others go on
        return f"{wanted.key}: {error!r}"
    return wanted.key


def main() -> None:
    """Record what a folder lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--bundle", type=Path, default=Path("build/kernelpack.kpk"))
    parser.add_argument("--own", type=Path, default=Path("build/own.kpk"))
    parser.add_argument("--programs", type=Path, default=Path("build/predict"))
    parser.add_argument("--match", default="", help="a pattern of keys")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    places = Places(bundle=given.bundle, own=given.own, programs=given.programs)
    wanted = enumerate(everything(given.kind, places))
    numbers = [number for number, one in wanted if re.search(given.match, one.key)]
    one = partial(_one, given.kind, places, given.folder)
    with get_context("spawn").Pool(given.jobs, maxtasksperchild=4) as pool:
        for word in pool.imap_unordered(one, numbers):
            print(word, flush=True)


if __name__ == "__main__":
    main()
