"""`kernelpack config`."""

from pathlib import Path

import pytest

from kernelpack.cli import config


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (["--cflags"], "kernelpack/include"),
        (["--libs"], "-lzstd -ldl -pthread"),
        (["--cflags", "--libs"], "kernelpack/include -lzstd -ldl -pthread"),
        (["--cmakedir"], "kernelpack/cmake"),
    ],
)
def test_what_is_asked_for(kernelpack, words, end):
    """One line, in the order of a compiler's."""
    said = kernelpack("config", *words)
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith(f"{end}\n")


def test_a_folder_with_blanks(kernelpack, monkeypatch):
    """A shell takes it for one word."""
    monkeypatch.setattr(config, "PACKAGE", Path("/opt/my kernels/kernelpack"))
    assert kernelpack("config", "--cflags").out == "'-I/opt/my kernels/kernelpack/include'\n"


def test_the_header_is_there(kernelpack):
    """The folder that is named holds the loader."""
    folder = kernelpack("config", "--cflags").out.strip().removeprefix("-I")
    assert (Path(folder) / "kernelpack" / "loader.hpp").is_file()


def test_nothing_asked(kernelpack):
    """Without a question there is no answer."""
    said = kernelpack("config")
    assert said.code == 2
    assert "say what to print: --cflags, --libs, --cmakedir" in said.err
