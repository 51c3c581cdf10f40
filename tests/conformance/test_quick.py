"""The conformance programs that compile in seconds, fetched, compiled and run unmodified."""

from pathlib import Path

import pytest

from conformance import sources
from conformance.compile import build
from conformance.programs import PROGRAMS, Program
from conformance.trial import run
from kernelpack.cache.key import code_digest
from kernelpack.emulate import standin
from kernelpack.spec.artifact import digest
from kernelpack.toolchain.locate import find
from tests.host import need
from tests.kept import folder_digest, names

CONFORMANCE = Path(__file__).parents[2] / "conformance"
ROOT = CONFORMANCE.parent / "build" / "conformance"
QUICK = [program for program in PROGRAMS if program.quick]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.toolchain,
    pytest.mark.xdist_group("conformance"),
]


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("program", QUICK, ids=lambda program: program.name)
def test_a_program_of_others_is_right(program: Program, schedule: str) -> None:
    """Its own check says that its results are right, and nothing new is found."""
    need("g++")
    toolchain = find("cuda-13.4", "nvcc")
    libraries = standin.build(ROOT, toolchain.include_dirs)
    made = build(program, sources.fetch(ROOT, program.folder), ROOT, toolchain, libraries)

    def tried() -> tuple[str, ...]:
        trial = run(program, made, schedule, ROOT)
        assert (trial.news, trial.is_right) == ((), True), trial.log
        return ("right",)

    parts = {
        "program": f"{program} {digest(made.read_bytes())}",
        "schedule": schedule,
        "stand-in": libraries.name,
        "host": code_digest("emulate", "cli", "process.py"),
        "trials": folder_digest(CONFORMANCE, (".py", ".toml")),
    }
    assert names(parts.items(), tried) == {"right"}
