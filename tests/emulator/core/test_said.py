"""What Python said of a launch is kept: it does not run again, unless something else decides."""

from dataclasses import replace

import pytest

from kernelpack.emulator.core import attempt
from kernelpack.emulator.prepare import Dependent
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.run import STEP_LIMIT
from kernelpack.emulator.schedule import Schedule
from tests.emulator.core import compare, said
from tests.emulator.core.said import Launch, Said, code_of, judged
from tests.emulator.kernel import prepared

pytestmark = pytest.mark.skipif(isinstance(attempt.core(), str), reason="there is no compiler")
BODY = "mov.u32 %r1, 7; st.global.b32 [%mine], %r1; ld.global.b32 %r2, [%mine];"
WRONG = "ld.shared.b32 %r1, [s]; st.global.b32 [%mine], %r1;"


def launch(body=BODY, schedule="eager") -> Launch:
    """A launch of a body."""
    made = prepared(body)
    first = Dependent(program=parse(made.text), plan=made.plan)
    return Launch(made.text, first, made.memory, Schedule.parse(schedule), STEP_LIMIT)


def kept_of(line: dict) -> dict[str, Said]:
    """What is read from a line."""
    return {line["key"]: Said(**{name: line[name] for name in Said.__dataclass_fields__})}


def no_python(monkeypatch):
    """Let a run of the Python engine fail."""

    def on_python(*_args, **_how):
        raise AssertionError("Python runs")

    monkeypatch.setattr(compare, "on_python", on_python)


@pytest.mark.parametrize(("body", "is_clean"), [(BODY, True), (WRONG, False)])
def test_python_does_not_run_again(monkeypatch, body, is_clean):
    line = judged(launch(body), {})
    assert line["is_clean"] is is_clean
    no_python(monkeypatch)
    again = judged(launch(body), kept_of(line))
    assert again == line | {"kept": True}


def test_a_core_that_says_something_else_is_compared_with_python(monkeypatch):
    kept = kept_of(judged(launch(), {}))
    real = compare.on_core

    def one_more_step(*args, **how):
        ran = real(*args, **how)
        return replace(ran, steps=ran.steps + 1)

    monkeypatch.setattr(compare, "on_core", one_more_step)
    monkeypatch.setattr(said, "on_core", one_more_step)
    assert judged(launch(), kept)["difference"].startswith("steps")


def test_a_core_that_misses_a_finding_is_compared_with_python(monkeypatch):
    kept = kept_of(judged(launch(WRONG), {}))
    real = compare.on_core

    def unwatched(*args, **how):
        return replace(real(*args, **how), doubt="")

    monkeypatch.setattr(compare, "on_core", unwatched)
    monkeypatch.setattr(said, "on_core", unwatched)
    assert judged(launch(WRONG), kept)["difference"].startswith("missed")


def test_a_doubt_that_spoils_memory_is_a_difference(monkeypatch):
    real = compare.on_core

    def spoilt(first, memory, *args, **how):
        ran = real(first, memory, *args, **how)
        memory.bytes[0] ^= 1
        return replace(ran, doubt="a test")

    monkeypatch.setattr(compare, "on_core", spoilt)
    assert "memory" in judged(launch(), {})["difference"]


@pytest.mark.parametrize(
    "other", [launch(schedule="lazy"), launch(BODY + "mov.u32 %r3, %r2;"), launch(WRONG)]
)
def test_what_decides_is_in_the_key(other):
    assert other.key != launch().key


def test_memory_is_in_the_key():
    one = launch()
    one.memory.bytes[0] ^= 1
    assert one.key != launch().key


def test_comments_of_the_semantics_are_not():
    plain = "def f():\n    return 1\n"
    assert code_of('"""A page."""\ndef f():\n    """One."""\n    return 1  # so\n') == code_of(
        plain
    )
    assert code_of(plain.replace("1", "2")) != code_of(plain)
