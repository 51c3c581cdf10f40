"""Both engines, event by event, on all that verification runs by default and on seeded faults.

    python -m tests.emulator.core.everything RESULTS BUNDLE... [--faults FILE] [--part 1/2] …

RESULTS gets a line of JSON a run, as it ends; runs that are in it are not done again. Faults come
first, then runs of each kernel and target in turn, its longest and then from the shortest on: what
is done when time is up has something of each. At the end the sums are printed and written to
RESULTS with the suffix `.sums.json`.
`python -m tests.emulator.core.fault_programs FILE` compiles the faults.
"""

import argparse
import json
import os
import time
from collections import Counter
from contextlib import closing
from itertools import chain, zip_longest
from pathlib import Path

from kernelpack.emulator.core import attempt
from kernelpack.workers.pool import run_workers
from tests.emulator.core import default_runs, fault_programs


def work(task):
    """Do a run of either kind, in a worker; what to write of it."""
    start = time.time()
    try:
        said = task.compare()
    except Exception as error:  # noqa: BLE001, one run must not end the others
        said = {"difference": f"{type(error).__name__}: {error}"[:2000]}
    return {"run": task.name, "kind": task.kind, "seconds": round(time.time() - start, 2), **said}


def main() -> None:
    """Parse the words, do what is left, tell the sums."""
    words = _words().parse_args()
    tasks = default_runs.tasks(words.bundles)
    if words.faults:
        tasks += fault_programs.tasks(words.faults)
    tasks = _in_order(tasks)
    part, parts = map(int, words.part.split("/"))
    tasks = tasks[part - 1 :: parts][:: words.step]
    assert len({task.name for task in tasks}) == len(tasks)
    known = {line["run"] for line in _lines(words.results)}
    left = [task for task in tasks if task.name not in known]
    print(f"{len(tasks)} runs, {len(tasks) - len(left)} of them done before", flush=True)  # noqa: T201
    assert not isinstance(attempt.core(), str), attempt.core()
    _run(left, words)
    _tell(words.results, tasks)


def _in_order(tasks) -> list:
    """Faults, then one run of each kind after the other."""
    kinds: dict = {}
    for task in sorted(tasks, key=lambda task: (task.weight, task.name)):
        kinds.setdefault(task.kind, []).append(task)
    faults = chain.from_iterable(kinds.pop(kind) for kind in sorted(kinds) if "fault" in kind)
    turns = zip_longest(*([of[-1], *of[:-1]] for of in kinds.values()))
    return [*faults, *(task for turn in turns for task in turn if task)]


def _words() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="where lines are added")
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
    return [json.loads(line) for line in results.read_text().splitlines()]


def _run(left, words) -> None:
    """Run what is left until it is done or time is up."""
    end = time.monotonic() + words.seconds
    with words.results.open("a") as file, closing(run_workers(work, left, words.jobs)) as done:
        for one in done:
            lost = {"run": left[one.index].name, "kind": "lost", "difference": str(one.error)}
            file.write(json.dumps(one.value or lost) + "\n")
            file.flush()
            if time.monotonic() > end:
                break


def _tell(results: Path, tasks) -> None:
    """What came out, by kind; every difference."""
    wanted = {task.name for task in tasks}
    lines = [line for line in _lines(results) if line["run"] in wanted]
    counts = Counter(f"{line['kind']}: {_class(line)}" for line in lines)
    differing = [line for line in lines if line["difference"]]
    sums = {
        "runs": len(tasks),
        "done": len(lines),
        "different": len(differing),
        "steps": sum(line.get("steps", 0) for line in lines),
        "events": sum(line.get("events", 0) for line in lines),
        "counts": dict(sorted(counts.items())),
    }
    results.with_suffix(".sums.json").write_text(json.dumps(sums, indent=2) + "\n")
    print(json.dumps(sums, indent=2))  # noqa: T201
    for line in differing[:20]:
        print(line["run"], line["difference"][:700])  # noqa: T201


def _class(line: dict) -> str:
    if line["difference"]:
        return "different"
    return line.get("ended", "same")


if __name__ == "__main__":
    main()
