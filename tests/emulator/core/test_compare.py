"""The comparison of both engines sees what differs: an event, the number of them, steps, a byte."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.emulator.core import attempt
from kernelpack.emulator.prepare import Dependent
from kernelpack.emulator.ptx.parser import parse
from tests.emulator.core import compare
from tests.emulator.kernel import prepared

pytestmark = pytest.mark.skipif(isinstance(attempt.core(), str), reason="there is no compiler")
BODY = "mov.u32 %r1, 7; st.global.b32 [%mine], %r1; bar.sync 0; ld.global.b32 %r2, [%mine];"
_ACCESS = 12


def without_last(ran, _memory):
    return replace(ran, log=ran.log[: _last_record(ran.log)])


def one_more(ran, _memory):
    return replace(ran, log=np.concatenate([ran.log, ran.log[_last_record(ran.log) :]]))


def another_cell(ran, _memory):
    log, at = ran.log.copy(), 0
    while log[at] != _ACCESS:
        at += 2 + log[at + 1]
    log[at + 1 + log[at + 1]] += 1  # its last word, which stands for the cells
    return replace(ran, log=log)


def one_more_step(ran, _memory):
    return replace(ran, steps=ran.steps + 1)


def another_byte(ran, memory):
    memory.bytes[-1] ^= 1
    return ran


def _last_record(log: np.ndarray) -> int:
    at = 0
    while at + 2 + log[at + 1] < len(log):
        at += 2 + log[at + 1]
    return at


def compared(monkeypatch, change=None) -> str:
    """What the comparison says of a launch of which the core tells something else."""
    real = compare.on_core

    def on_core(first, memory, *args, **limits):
        ran = real(first, memory, *args, **limits)
        return change(ran, memory) if change else ran

    monkeypatch.setattr(compare, "on_core", on_core)
    made = prepared(BODY)
    return compare.difference(
        Dependent(program=parse(made.text), plan=made.plan), made.memory, "eager"
    )


def test_nothing_differs(monkeypatch):
    assert compared(monkeypatch) == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_last, "the core has no more"),
        (one_more, "the core has more events"),
        (another_cell, "(access)"),
        (one_more_step, "steps "),
        (another_byte, "1 bytes"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_difference_is_seen(monkeypatch, change, said):
    assert said in compared(monkeypatch, change)


def test_chunks_of_the_log_are_one_log(monkeypatch):
    """A record that crosses the end of a chunk is whole."""
    log = np.array([5, 2, 10, 11, 6, 3, 1, 2, 3, 7, 0], np.int64)
    whole = list(compare.records(log))
    monkeypatch.setattr(compare, "_CHUNK", 5)
    assert list(compare.records(log)) == whole == [(5, 10, 11), (6, 1, 2, 3), (7,)]
