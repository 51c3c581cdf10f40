"""Both engines, event by event, on all that verification runs by default and on seeded faults.

    python -m tests.emulator.core.everything FOLDER BUNDLE... [--faults FILE] [--part 1/2] …

A file of FOLDER, named by a digest of the core, gets a line of JSON a run, as it ends; runs that
are in it are not done again. What Python said is taken from the files of other cores there, so that
a changed core is compared in minutes: the runs that they have come first. Then come some runs of
each kernel and target, then the faults, then the rest from the shortest on. At the end the sums are
printed and written to `sums.json`. Files may be packed, `X.jsonl.xz`: that of benchmarks/results/
has what was compared before, and serves in a new FOLDER.
`python -m tests.emulator.core.fault_programs FILE` compiles the faults.
"""

import argparse
import json
import lzma
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache, partial
from itertools import chain
from math import log2
from pathlib import Path

from kernelpack.emulator.core import attempt, compiled
from kernelpack.workers.pool import run_workers
from tests.emulator.core import default_runs, fault_programs
from tests.emulator.core.said import Said
from tests.emulator.core.sums import sums

_EARLY = 4
"""Runs of each kind before all others."""


def work(folder: Path, task) -> dict:
    """Do a run of either kind, in a worker; what to write of it."""
    start = time.process_time()
    try:
        said = task.compare(_kept(folder))
    except Exception as error:  # noqa: BLE001, one run must not end the others
        said = {"difference": f"{type(error).__name__}: {error}"[:2000]}
    seconds = round(time.process_time() - start, 2)
    return {"run": task.name, "kind": task.kind, "seconds": seconds, **said}


@cache
def _kept(folder: Path) -> dict[str, Said]:
    """What Python said, by key, in all files of a folder."""
    names = Said.__dataclass_fields__
    lines = (line for line in _known(folder) if "key" in line)
    return {line["key"]: Said(**{name: line[name] for name in names}) for line in lines}


def _known(folder: Path) -> Iterator[dict]:
    """The lines of all files of a folder."""
    for file in folder.glob("*.jsonl*"):
        yield from _lines(file)


def main() -> None:
    """Parse the words, do what is left, tell the sums."""
    words = _words().parse_args()
    words.folder.mkdir(parents=True, exist_ok=True)
    assert not isinstance(attempt.core(), str), attempt.core()
    results = words.folder / f"{compiled._digest(compiled.compiler())}.jsonl"
    tasks = default_runs.tasks(words.bundles)
    if words.faults:
        tasks += fault_programs.tasks(words.faults)
    assert len({task.name for task in tasks}) == len(tasks)
    known = {line["run"] for line in _known(words.folder)}
    part, parts = map(int, words.part.split("/"))
    tasks = list(_in_order(tasks, known))[part - 1 :: parts][:: words.step]
    done = {line["run"] for line in _lines(results)}
    left = [task for task in tasks if task.name not in done]
    print(f"{len(tasks)} runs, {len(tasks) - len(left)} of them done before", flush=True)  # noqa: T201
    _run(left, results, words)
    _tell(results, tasks)


def _in_order(tasks: Sequence, known: set[str]) -> Iterator:
    """Those known, some of each kind, faults, then from the shortest on, alike ones together."""
    tasks = sorted(tasks, key=lambda task: (int(log2(task.weight)), task.kind, task.name))
    yield from (task for task in tasks if task.name in known)
    kinds: dict[str, list] = {}
    for task in tasks:
        if task.name not in known:
            kinds.setdefault(task.kind, []).append(task)
    yield from chain.from_iterable(of[:_EARLY] for of in kinds.values())
    late = {task.name for of in kinds.values() for task in of[_EARLY:]}
    for of_faults in (True, False):
        yield from (t for t in tasks if t.name in late and ("fault" in t.kind) is of_faults)


def _words() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where lines are added")
    parser.add_argument("bundles", type=Path, nargs="*", help="bundles of variants")
    parser.add_argument("--faults", type=Path, help="the file of fault_programs")
    parser.add_argument("--part", default="1/1", help="every N-th run from the I-th: I/N")
    parser.add_argument("--step", type=int, default=1, help="every so many-th of these alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at once")
    parser.add_argument("--seconds", type=float, default=1e9, help="what remains then is left")
    return parser


def _lines(results: Path) -> list[dict]:
    if not results.exists():
        return []
    packed = results.read_bytes()
    told = lzma.decompress(packed) if results.suffix == ".xz" else packed
    return [json.loads(line) for line in told.splitlines()]


def _run(left: Sequence, results: Path, words: argparse.Namespace) -> None:
    """Run what is left until it is done or time is up."""
    end, do = time.monotonic() + words.seconds, partial(work, words.folder)
    with results.open("a") as file, closing(run_workers(do, left, words.jobs)) as done:
        for one in done:
            lost = {"run": left[one.index].name, "kind": "lost", "difference": str(one.error)}
            file.write(json.dumps(one.value or lost) + "\n")
            file.flush()
            if time.monotonic() > end:
                break


def _tell(results: Path, tasks: Sequence) -> None:
    """What came out, by kind; every difference."""
    lines = {line["run"]: line for line in _lines(results)}
    done = [lines[task.name] for task in tasks if task.name in lines]
    found = sums(done, [task.kind for task in tasks])
    results.with_name("sums.json").write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))  # noqa: T201
    for line in [line for line in done if line["difference"]][:20]:
        print(line["run"], line["difference"][:700])  # noqa: T201


if __name__ == "__main__":
    main()
