"""How a build shows itself where there is no terminal, and where there is one."""

import io
import sys

import pytest

from kernelpack.build.options import Outcome, State
from kernelpack.cli import progress
from kernelpack.cli.progress import Lines, watch


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def outcome(number):
    return Outcome(variant_id=f"k[a={number}]", state=State.COMPILED)


def test_quick_build_is_silent(clock, capsys):
    """A build of less than a few seconds shows nothing."""
    lines = Lines()
    lines.begin(2)
    lines.tell(outcome(1))
    lines.tell(outcome(2))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("seconds", "expected"), [(4, ""), (20, "0/317\n"), (150, "0/317, about 2 min left\n")]
)
def test_long_work_is_announced(capsys, seconds, expected):
    """The work is announced first, if it may take more than a few seconds."""
    Lines().begin(317, seconds)
    assert expected == capsys.readouterr().err


@pytest.mark.parametrize(("total", "expected"), [(3, ""), (379, "packing 379 entries\n")])
def test_packing_is_announced(capsys, total, expected):
    """A line names the last wait, if it takes more than a few seconds."""
    lines = Lines()
    lines.begin(total)
    lines.pack()
    assert expected == capsys.readouterr().err


@pytest.mark.parametrize(("count", "expected"), [(1, ""), (2, "compiling 2 of 179 variants\n")])
def test_compiling_is_announced(capsys, count, expected):
    """The uncached part is announced before its first result."""
    lines = Lines()
    lines.begin(179)
    lines.compile(count)
    assert expected == capsys.readouterr().err


def test_a_line_now_and_then(clock, capsys):
    """After some seconds a line says how far it is; the next one as much later."""
    lines = Lines()
    lines.begin(3)
    clock.now += 6
    lines.tell(outcome(1))
    clock.now += 1
    lines.tell(outcome(2))
    clock.now += 6
    lines.tell(outcome(3))
    assert capsys.readouterr().err == "1/3: k[a=1]\n3/3: k[a=3]\n"


@pytest.mark.parametrize(
    ("runs", "expected"),
    [(4, "2/4: "), (32, "2/32, about 5 min left: "), (3602, "2/3602, about 10 h left: ")],
)
def test_what_is_left(clock, capsys, runs, expected):
    """A line says how long the rest takes at the pace since the one before, if minutes."""
    lines = Lines()
    lines.begin(runs)
    clock.now += 100
    lines.tell(outcome(1))
    clock.now += 10
    lines.tell(outcome(2))
    assert capsys.readouterr().err == f"1/{runs}: k[a=1]\n{expected}k[a=2]\n"


def test_no_terminal(monkeypatch):
    """Lines where stderr is a file."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with watch() as shown:
        assert isinstance(shown, Lines)


def test_terminal(monkeypatch):
    """A bar where it is a terminal, gone in the end."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with watch() as shown:
        shown.begin(1)
        shown.tell(outcome(1))
    assert "k[a=1]" in terminal.getvalue()


def test_how_far_the_next_one_is(clock, capsys):
    """A line where nothing was said for seconds."""
    lines = Lines()
    lines.begin(1)
    lines.at("cluster 1")
    clock.now += 6
    lines.at("cluster 2")
    lines.at("cluster 3")
    assert capsys.readouterr().err == "cluster 2\n"
