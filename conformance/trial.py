"""Run a compiled program under a schedule by `kernelpack emulate`, and say what came of it."""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.programs import Program
from kernelpack import process

_HERE = Path(__file__).parent
EXPECTED = _HERE / "expected.toml"
ROOT = _HERE.parent
_KERNELPACK = "from kernelpack.cli.main import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of a run. `steps` and `seconds` are those of the kernels on trial.

    `news` are the findings and failed calls that `expected.toml` does not list, `known` the rules
    of those it does.
    """

    program: str
    schedule: str
    is_right: bool
    news: tuple[str, ...]
    known: tuple[str, ...]
    steps: int
    seconds: float
    wall_seconds: float
    log: str = ""

    @property
    def passed(self) -> bool:
        """Right numbers, or an expected fault that ended the run; and nothing new."""
        return not self.news and (self.is_right or "deadlock" in self.known)


def schedules(program: Program, names: tuple[str, ...]) -> Iterator[str]:
    """The schedules of a program; `starving` stands for holding back its warps in turn."""
    for name in names:
        if name != "starving":
            yield name
            continue
        for rank in range(program.ranks):
            yield from (f"starving:{rank}:{warp}" for warp in program.held)


def run(program: Program, made: Path, schedule: str, cache: Path) -> Trial:
    """Run a program once.

    Args:
        program: what was compiled.
        made: its executable, or opengemm's library.
        schedule: as for `kernelpack emulate`.
        cache: the cache that holds the stand-in.

    """
    with TemporaryDirectory() as name:
        report = Path(name) / "report.json"
        begin = time.perf_counter()
        done = process.run(
            [
                *(sys.executable, "-c", _KERNELPACK, "emulate", "--schedule", schedule),
                *("--multiprocessors", str(program.multiprocessors), "--kernels", program.kernels),
                *(("--native", str(_HERE / program.native)) if program.native else ()),
                *("--expected", str(EXPECTED), "--report", str(report)),
                *_command(program, made),
            ],
            cwd=ROOT,
            env={**os.environ, "KERNELPACK_CACHE_DIR": str(cache)},
        )
        wall = time.perf_counter() - begin
        found = json.loads(report.read_text()) if report.is_file() else {}
    return _judge(program, schedule, done, found, wall)


def _command(program: Program, made: Path) -> list[str]:
    """The program's own words, or a host program of ours for a kernel that a compiler emitted."""
    if program.compiler == "opengemm":
        return [sys.executable, str(_HERE / "opengemm_host.py"), str(made), *program.arguments]
    if program.compiler:
        cases = f"conformance.{program.compiler}_cases"
        return [sys.executable, str(_HERE / "ptx_host.py"), cases, str(made), *program.arguments]
    return [str(made), *program.arguments]


def _judge(
    program: Program, schedule: str, done: process.Completed, found: dict[str, Any], wall: float
) -> Trial:
    launches = [x for x in found.get("launches", []) if fnmatchcase(x["kernel"], program.kernels)]
    problems = [problem for launch in launches for problem in launch["problems"]]
    problems += found.get("errors", [])
    news = [problem["text"] for problem in problems if not problem["expected"]]
    news += [] if launches else ["no launch of the kernels on trial"]
    return Trial(
        program=program.name,
        schedule=schedule,
        is_right=program.says in done.stdout and not found.get("returncode", 1),
        news=(*news, *found.get("refused", ()), *found.get("missed", ())),
        known=tuple(sorted({problem["rule"] for problem in problems if problem["expected"]})),
        steps=sum(launch["steps"] for launch in launches),
        seconds=sum(launch["seconds"] for launch in launches),
        wall_seconds=wall,
        log=done.stdout + done.stderr,
    )
