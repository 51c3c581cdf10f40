"""Lines of source beside places."""

import os

import pytest

from kernelpack.emulate.source_lines import SourceLines


@pytest.fixture
def program(tmp_path):
    """A program and, older by a second, its source of two lines."""
    source, made = tmp_path / "k.cu", tmp_path / "program"
    source.write_text("first\n\ts[i] = i;\n")
    made.touch()
    now = made.stat().st_mtime
    os.utime(source, (now - 1, now - 1))
    return made


def test_both_places(program):
    """Each place is shown once, without the blanks around its line."""
    source = program.parent / "k.cu"
    text = f"{source}:2: warp 1 writes what warp 0 wrote at {source}:2, begun at {source}:1 `st`"
    found = list(SourceLines.of(program).beside(text))
    assert found == [f"{source}:2: s[i] = i;", f"{source}:1: first"]


def test_a_line_that_is_not_there(program):
    """Nothing is shown of a line past the end, of no file, of a changed file, or of no program."""
    source = program.parent / "k.cu"
    lines = SourceLines.of(program)
    assert not list(lines.beside(f"{source}:3 {source}:0 /no/such.cu:1 ptx:4"))
    assert list(lines.beside(f"{source}:1"))
    os.utime(source, (lines.made + 1, lines.made + 1))
    assert not list(lines.beside(f"{source}:1"))
    assert not list(SourceLines.of(program.parent / "nothing").beside(f"{source}:1"))
