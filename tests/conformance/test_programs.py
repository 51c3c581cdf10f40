"""The list of programs, and what a run of one is judged by."""

import pytest

from conformance import table
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
    [([], False, 13), ([], True, 3), (["tutorial"], False, 5), (["72a", "77"], False, 2)],
)
def test_choosing(words, quick, count):
    """Words choose by a part of the name; without one all are chosen."""
    assert len(choose(words, quick=quick)) == count


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
