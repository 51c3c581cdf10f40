"""The list of programs, and what a run of one is judged by."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from conformance import case, sources, table
from conformance.programs import PROGRAMS, choose
from conformance.trial import EXPECTED, Trial, schedules
from kernelpack.emulate import expected
from kernelpack.errors import KernelpackError


def trial(**changes: object) -> Trial:
    given = {
        "program": PROGRAMS[0].name,
        "schedule": "eager",
        "is_right": True,
        "news": (),
        "known": (),
        "steps": 12345,
        "seconds": 1.25,
        "wall_seconds": 2.0,
    }
    return Trial(**(given | changes))  # type: ignore[arg-type]


def test_names_are_told_apart():
    """Every program has a name of its own."""
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize(
    ("words", "quick", "count"),
    [
        ([], False, len(PROGRAMS)),
        ([], True, 3),
        (["cute tutorial"], False, 5),
        (["72a", "77"], False, 2),
    ],
)
def test_choosing(words, quick, count):
    """Words choose by a part of the name; without one all are chosen."""
    assert len(choose(words, quick=quick)) == count


EMITTED = [program for program in PROGRAMS if program.compiler not in {"", "opengemm"}]


@pytest.mark.parametrize("program", EMITTED, ids=lambda program: program.name)
def test_a_kernel_that_a_compiler_emits_has_a_launch(program):
    """Its numbers are known, and what is not filled is not right."""
    cases = import_module(f"conformance.{program.compiler}_cases")
    (name,) = program.arguments
    launch = cases.CASES[name](np.random.default_rng(1))
    assert name in cases.COMPILED
    assert [result.is_right() for result in launch.results] == [False] * len(launch.results)


def test_what_is_right():
    """Every element is within its bound: one that is not suffices, and so does NaN."""
    want, bound = np.ones(3), np.full(3, 0.5)
    given = ([1.5, 1, 0.5], [1, 1, 1.75], [1, np.nan, 1])
    verdicts = [case.Result(np.array(one), want, bound).is_right() for one in given]
    assert verdicts == [True, False, False]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_sources_are_pinned(program):
    """Every package that a program is made of has one version."""
    path = Path(sources.__file__).parent / "requirements" / f"{program.folder}.txt"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert [line.count("==") for line in lines] == [1] * len(lines)


def test_an_unknown_program():
    """A word that is in no name is an error."""
    with pytest.raises(KernelpackError, match="no program `73`"):
        choose(["73"], quick=False)


def test_starving_holds_each_warp_back():
    """`starving` stands for one run a warp and rank."""
    program = choose(["bf16"], quick=True)[0]
    names = list(schedules(program, ("eager", "starving")))
    assert names[0] == "eager"
    assert names[1:] == [f"starving:{rank}:{warp}" for rank in range(2) for warp in range(6)]


@pytest.mark.parametrize(
    ("changes", "passed"),
    [
        ({}, True),
        ({"is_right": False}, False),
        ({"news": ("x",)}, False),
        ({"is_right": False, "known": ("deadlock",)}, True),
    ],
)
def test_a_verdict(changes, passed):
    """A run passes when it is right, or ended by a fault that is listed, with nothing new."""
    assert trial(**changes).passed is passed


def test_trials_are_kept(tmp_path):
    """A run that was broken off finds what it had done."""
    path = tmp_path / "trials.json"
    kept = [trial(), trial(schedule="lazy", known=("race",))]
    table.save(path, kept)
    assert table.load(path) == kept
    assert table.load(tmp_path / "nothing.json") == []


def test_the_table(tmp_path):
    """A program's runs make one line."""
    path = tmp_path / "page.md"
    starved = [
        trial(schedule=f"starving:0:{w}", is_right=w < 3, known=("deadlock",)) for w in range(4)
    ]
    table.write(path, [trial(), *starved])
    line = next(text for text in path.read_text().splitlines() if PROGRAMS[0].name in text)
    assert "Programs: 1. Runs: 5, of which 4 are right, 1 hang as listed." in path.read_text()
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[3:9] == [
        "right",
        "not run",
        "3 of 4 right, 1 hang as listed",
        "deadlock",
        "12,345",
        "1.2",
    ]


def test_every_expected_finding_has_a_reason():
    """The file can be read, and each entry says why, for kernels that it names."""
    entries = expected.load(EXPECTED)
    assert [entry for entry in entries if len(entry.reason) < 40 or entry.kernel == "*"] == []
