"""The core's checks hear what the Python engine's checks heard, and doubt at the same event."""

import ctypes

import numpy as np
import pytest

from kernelpack.emulator.checks import Ordering, Starts, Swizzles
from kernelpack.emulator.core import compiled
from kernelpack.emulator.faults import Level, UnsupportedError
from kernelpack.emulator.run import run
from kernelpack.errors import ToolchainError
from tests.emulator.core.recorder import Recorder
from tests.emulator.core.twins import PROGRAMS, Program

SOURCE = "tests/emulator/core/replay.cpp"
APART = 0, 1, 512
"""Cells that come again have no number, one each, or numbers that share one place of a table."""


@pytest.fixture(scope="module")
def replay(request, tmp_path_factory):
    """The function of `replay.cpp`."""
    library = tmp_path_factory.mktemp("replay") / "replay.so"
    try:
        words = compiled.compiler()
    except ToolchainError as error:
        pytest.skip(str(error))
    source = request.config.rootpath / SOURCE
    flags = "-std=c++17", "-O1", "-shared", "-fPIC"
    compiled.run_compiler([*words, *flags, str(source), "-o", str(library)], library.parent)
    found = ctypes.CDLL(str(library)).replay
    found.restype = ctypes.c_long
    found.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t,
    )  # fmt: skip
    return found


class Told:
    """What a check reports to; the recorder is told of what counts at level `warn`."""

    def __init__(self, report, recorder):
        self.report, self.recorder = report, recorder

    def __call__(self, rule, *words, **more):
        if rule.level <= Level.WARN:
            self.recorder.found(rule.name)
        self.report(rule, *words, **more)

    @property
    def at(self):
        return self.report.at

    def line(self, at):
        return self.report.line(at)


def recorded(program: Program) -> Recorder:
    """A run of the Python engine; the recorder hears of each event before the checks do."""
    recorder, made = Recorder(), program.prepared()
    checks = [
        lambda report, check=check: check(Told(report, recorder))
        for check in (Starts, Ordering, Swizzles)
    ]
    try:
        run(
            made.text, made.plan, made.memory, checks=[lambda _: recorder, *checks],
            schedule=program.schedule, step_limit=200_000,
        )  # fmt: skip
    except UnsupportedError:
        pytest.skip("the emulator does not run it to its end")
    return recorder


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: f"{p.rule}-{p.schedule}")
def test_the_same_event(replay, program: Program):
    """What Python reports first is where the core doubts; and it doubts nowhere else."""
    recorder = recorded(program)
    words = np.concatenate(recorder.words)
    why = ctypes.create_string_buffer(200)
    for apart in APART:
        event = replay(words.ctypes.data, len(words), apart, why, len(why))
        assert event == recorder.first, (apart, recorder.rule, why.value.decode())
