"""Both engines, event by event, on the launches of conformance programs.

    python -m tests.emulator.core.conformance_runs RESULTS [PROGRAM]... [--schedules eager,lazy,…]

Programs are fetched, compiled and run as by `python -m conformance`. Each launch on trial runs on
both engines from the memory that the program left, and RESULTS gets a line of JSON of it; then the
program goes on. Launches that overlap another one are the Python engine's alone.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from conformance import sources, trial
from conformance.__main__ import ROOT, SCHEDULES
from conformance.compile import build
from conformance.programs import choose
from kernelpack.emulate import standin
from kernelpack.emulator.prepare import Dependent
from kernelpack.emulator.run import Result, run
from kernelpack.toolchain.locate import find
from tests.emulator.core.compare import copied
from tests.emulator.core.said import told_of_both

_RESULTS, _NAME = "COMPARED_RESULTS", "COMPARED_NAME"
_COMMAND = "from tests.emulator.core.conformance_runs import emulate; emulate()"
MEMORY_MB = 64
"""Of the device: it is copied for each launch, and no program needs as much as a GPU has."""


def compared(program: Any, plan: Any, memory: Any, **words: Any) -> Result:
    """In place of `emulator.run`: the same, after both engines ran a copy."""
    if words["then"]:
        line = {"difference": "", "ended": "overlapping: Python's alone"}
    else:
        given = {name: words[name] for name in ("parameters", "addresses", "workspace")}
        first = Dependent(program=program, plan=plan, **given)
        line = told_of_both(first, copied(memory), words["schedule"], words["step_limit"])
    name = f"{os.environ[_NAME]} {plan.entry[:80]}"
    kind = f"conformance {os.environ[_NAME].rpartition(' ')[0]}"
    with Path(os.environ[_RESULTS]).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"run": name, "kind": kind, **line}) + "\n")
    return run(program, plan, memory, **words)


def emulate() -> None:
    """`kernelpack emulate` in the child, whose launches are compared."""
    from kernelpack.cli import emulate as command
    from kernelpack.cli.main import main

    sys.argv[2:2] = ["--memory", str(MEMORY_MB)]
    with patch.object(command, "run", compared):
        main()


def main() -> None:
    """Compare what the words ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="where lines are added")
    parser.add_argument("programs", nargs="*", help="words of names; all programs if left out")
    parser.add_argument("--schedules", default=",".join(SCHEDULES), help="names, with commas")
    parser.add_argument("--root", type=Path, default=ROOT / "build" / "conformance")
    asked = parser.parse_args()
    os.environ[_RESULTS] = str(asked.results.absolute())
    toolchain = find("cuda-13.4", "nvcc")
    libraries = standin.build(asked.root, toolchain.include_dirs)
    for program in choose(asked.programs, quick=False):
        folder = sources.fetch(asked.root, program.folder)
        made = build(program, folder, asked.root, toolchain, libraries)
        for schedule in trial.schedules(program, tuple(asked.schedules.split(","))):
            os.environ[_NAME] = f"{program.name} {schedule}"
            with patch.object(trial, "_KERNELPACK", _COMMAND):
                done = trial.run(program, made, schedule, asked.root)
            said = "right" if done.is_right else done.log[-2000:]
            print(program.name, schedule, said, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
