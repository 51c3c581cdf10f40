"""A launch of a program runs on both engines and leaves a line; then the program goes on."""

import json

import pytest

from kernelpack.emulator.core import attempt
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.run import STEP_LIMIT
from kernelpack.emulator.schedule import Schedule
from tests.emulator.core import conformance_runs
from tests.emulator.kernel import prepared

pytestmark = pytest.mark.skipif(isinstance(attempt.core(), str), reason="there is no compiler")
WORDS = {"parameters": None, "addresses": None, "workspace": 0, "step_limit": STEP_LIMIT}


@pytest.mark.parametrize(
    ("then", "ended"), [((), "same: clean"), (("another",), "overlapping: Python's alone")]
)
def test_a_launch(monkeypatch, tmp_path, then, ended):
    made = prepared("st.global.b32 [%mine], %lane;")
    results = tmp_path / "results.jsonl"
    monkeypatch.setenv("COMPARED_RESULTS", str(results))
    monkeypatch.setenv("COMPARED_NAME", "a program eager")
    monkeypatch.setattr(conformance_runs, "run", lambda *_, **__: "the result")
    words = {**WORDS, "schedule": Schedule.parse("eager"), "then": then}
    before = made.memory.bytes.copy()
    found = conformance_runs.compared(parse(made.text), made.plan, made.memory, **words)
    line = json.loads(results.read_text())
    assert (found, line["difference"], line["ended"]) == ("the result", "", ended)
    assert (line["run"], line["kind"]) == ("a program eager test", "conformance a program")
    assert (made.memory.bytes == before).all()
