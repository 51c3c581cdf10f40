"""The command with streams that are closed, full, narrow, or left by their reader."""

import errno
import os
import subprocess
import sys

import pytest

from kernelpack.cli.main import main

PROGRAM = "from kernelpack.cli.main import main; main()"


def run(*words, closed=(), **variables):
    """`kernelpack` as a process of its own, with some of its streams closed."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, words)],
        capture_output=True,
        check=False,
        env=os.environ | variables,
        preexec_fn=lambda: [os.close(number) for number in closed],
    )


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_closed(bundle, closed):
    """What goes to a closed stream is lost; the rest is done and said as ever."""
    done = run("ls", bundle, closed=closed)
    assert (done.returncode, b"entry" in done.stdout, b"2 entries" in done.stderr) == (
        0,
        1 not in closed,
        2 not in closed,
    )


def test_error_without_stderr():
    """The exit code reports an error that cannot be printed."""
    assert run("ls", "no.kpk", closed=(2,)).returncode == 1


class Full:
    """A stream on a disk without room, from the first byte or when it is flushed."""

    encoding = "utf-8"

    def __init__(self, capacity):
        self.capacity = capacity
        self.reading, self.writing = os.pipe()

    def write(self, text):
        self.capacity -= len(text)
        if self.capacity < 0:
            self.flush()
        return len(text)

    def flush(self):
        raise OSError(errno.ENOSPC, "No space left on device")

    def fileno(self):
        return self.writing


@pytest.fixture(params=[0, 10**6])
def full(request):
    stream = Full(request.param)
    yield stream
    os.close(stream.reading)
    os.close(stream.writing)


def test_full(bundle, full, monkeypatch, capfd):
    """A full disk behind stdout is one line and exit code 1, whenever it is noticed."""
    monkeypatch.setattr(sys, "stdout", full)
    with pytest.raises(SystemExit) as left:
        main(["ls", str(bundle), "--json"])
    said = capfd.readouterr().err
    assert (left.value.code, said.count("\n")) == (1, 1)
    assert said.startswith("error: ")
    assert said.endswith("No space left on device\n")


@pytest.mark.parametrize(
    ("options", "told"), [((), rb"b\xfcndel.kpk"), (("--json",), rb"b\u00fcndel.kpk")]
)
def test_narrow(bundle, options, told):
    """What the encoding of stdout lacks is written as escapes, JSON's own in JSON."""
    named = bundle.rename(bundle.with_name("b\u00fcndel.kpk"))
    done = run("info", named, *options, PYTHONIOENCODING="ascii")
    assert (done.returncode, told in done.stdout) == (0, True)
