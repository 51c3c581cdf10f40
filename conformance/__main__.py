"""`python -m conformance [PROGRAM]...`: fetch, compile, run, report; 1 if one failed."""

import argparse
import sys
from pathlib import Path

from conformance import sources, table
from conformance.compile import build
from conformance.programs import choose
from conformance.trial import Trial, run, schedules
from kernelpack.cli import console
from kernelpack.emulate import standin
from kernelpack.errors import KernelpackError
from kernelpack.toolchain.locate import find

ROOT = Path(__file__).parents[1]
SCHEDULES = ("eager", "lazy", "starving")


def main(words: list[str]) -> int:
    """Run what the words ask for."""
    asked = _parser().parse_args(words)
    asked.root.mkdir(parents=True, exist_ok=True)
    names = tuple(asked.schedules.split(",")) if not asked.quick else ("eager", "lazy")
    toolchain = find("cuda-13.4", "nvcc")
    libraries = standin.build(asked.root, toolchain.include_dirs)
    trials: list[Trial] = []
    kept = asked.root / "trials.json"
    for program in choose(asked.programs, quick=asked.quick):
        folder = sources.fetch(asked.root, program.folder)
        made = build(program, folder, asked.root, toolchain, libraries)
        for schedule in schedules(program, names):
            trials.append(run(program, made, schedule, asked.root))
            _tell(trials[-1])
            table.save(kept, _merge(table.load(kept), trials))
    if asked.docs:
        table.write(ROOT / "docs" / "conformance.md", table.load(kept))
    return 0 if all(trial.passed for trial in trials) else 1


def _merge(old: list[Trial], new: list[Trial]) -> list[Trial]:
    """The newest trial of each program under each schedule."""
    by_key = {(trial.program, trial.schedule): trial for trial in (*old, *new)}
    return list(by_key.values())


def _tell(trial: Trial) -> None:
    verdict = "right" if trial.is_right else "hangs, as listed" if trial.passed else "WRONG"
    known = f", expected: {', '.join(trial.known)}" if trial.known else ""
    console.say(
        f"{trial.program}, {trial.schedule}: {verdict}, {trial.steps} warp instructions, "
        f"{trial.seconds:.1f} of {trial.wall_seconds:.1f} s{known}"
    )
    for text in trial.news:
        console.say(f"  NEW: {text}")
    if not trial.passed:
        console.say(trial.log[-3000:])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument("programs", nargs="*", help="words of names; all programs if left out")
    parser.add_argument("--quick", action="store_true", help="the part that CI runs")
    parser.add_argument("--schedules", default=",".join(SCHEDULES), help="names, with commas")
    parser.add_argument("--docs", action="store_true", help="write docs/conformance.md")
    parser.add_argument(
        "--root", type=Path, default=ROOT / "build" / "conformance", help="where all is kept"
    )
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KernelpackError as error:
        sys.exit(f"error: {error}")
