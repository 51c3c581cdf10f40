"""The table of docs/conformance.md: a program's runs under each schedule, in one line."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from conformance.programs import PROGRAMS, Program
from conformance.trial import Trial

_HEAD = """# Conformance

Programs of others that are known to be right on a B200, compiled unmodified and run on the
emulator: host code, launches, tensor maps and kernels. Their sources come from PyPI
(`conformance/requirements`). All of it by one command: `python -m conformance --docs`, which
writes this page; the part that CI runs: `--quick`, and beside it nine everyday CUDA programs of
ours (`tests/emulate/everyday`), which must print what they print on an H200.

Triton and CuTe-DSL are on trial as compilers: small kernels in their languages
(`conformance/triton_kernels.py`, `cute_kernels.py`) are compiled for `sm_100a` with no GPU, and the
PTX is launched by a host program of ours, which compares with float64. CUB and Thrust are headers
of CCCL, whose wheel is the toolchain's own: each has a program of ours (`conformance/cccl`), which
compares with the standard library; so has FlashInfer's softmax and top-p.

A run is right when the program itself says so of its results. Under *starving*, each warp of the
cluster's first CTAs is held back in turn (of examples 75 and 77, one warp of each role); the column
says how many of these runs were right. Findings are those of the default level; those that are true
and known are listed with their reasons in `conformance/expected.toml`, others are counted here.

Fills and reference kernels of the programs run on the emulator too, eagerly and unchecked, and are
not counted. One alone is computed natively: example 77's comparison of its result with its
reference (`conformance/fmha_native.py`), which adds up a thousand threads of each block one after
the other, in 42 million warp instructions. Times are of one core of a shared machine, eager.

{count}

| program | options | eager | lazy | starving | findings | warp instructions | seconds |
|---|---|---|---|---|---|---|---|
"""


def write(path: Path, trials: Sequence[Trial]) -> None:
    """Write the page."""
    lines = [_line(p, [t for t in trials if t.program == p.name]) for p in PROGRAMS]
    path.write_text(_HEAD.format(count=_count(trials)) + "".join(lines))


def _count(trials: Sequence[Trial]) -> str:
    """What came of all runs, in a sentence."""
    programs = len({trial.program for trial in trials})
    right = sum(trial.is_right for trial in trials)
    hang = sum(trial.passed and not trial.is_right for trial in trials)
    rest = len(trials) - right - hang
    wrong = f", {rest} are wrong" if rest else ""
    return (
        f"Programs: {programs}. Runs: {len(trials)}, of which {right} are right, {hang} hang as "
        f"listed{wrong}."
    )


def _line(program: Program, trials: Sequence[Trial]) -> str:
    eager = [trial for trial in trials if trial.schedule == "eager"]
    lazy = [trial for trial in trials if trial.schedule == "lazy"]
    starving = [trial for trial in trials if trial.schedule.startswith("starving")]
    rules = sorted({rule for trial in trials for rule in trial.known})
    news = sum(len(trial.news) for trial in trials)
    found = ", ".join(rules) or "none"
    cells = [
        program.name,
        f"`{' '.join(program.arguments)}`" if program.arguments else "",
        _verdict(eager),
        _verdict(lazy),
        _verdict(starving),
        f"{found}; {news} not expected" if news else found,
        f"{eager[0].steps:,}" if eager else "",
        f"{eager[0].seconds:.1f}" if eager else "",
    ]
    return f"| {' | '.join(cells)} |\n"


def _verdict(trials: Sequence[Trial]) -> str:
    if not trials:
        return "not run"
    right = sum(trial.is_right for trial in trials)
    listed = sum(trial.passed and not trial.is_right for trial in trials)
    if len(trials) == 1:
        return "right" if right else "wrong"
    hang = f", {listed} hang as listed" if listed else ""
    return f"{right} of {len(trials)} right{hang}"


def save(path: Path, trials: Iterable[Trial]) -> None:
    """Keep trials, so that a run that was broken off can go on."""
    path.write_text(json.dumps([asdict(trial) for trial in trials], indent=1))


def load(path: Path) -> list[Trial]:
    """The trials that were kept; none where there is no file."""
    if not path.is_file():
        return []
    kept = json.loads(path.read_text())
    return [Trial(**{**k, "news": tuple(k["news"]), "known": tuple(k["known"])}) for k in kept]
