"""Long launches: how far they are, and what is left of them when they are ended."""

import json
import os
import signal
import subprocess
import sys

import pytest

from kernelpack.emulate.watching import SLOWER, TELL_SECONDS, Abandoned, Watching
from tests.emulate.images import SCALE
from tests.kept import FOLDER
from tests.programs import started

ENDLESS = SCALE.replace("ret;", "LOOP: add.u32 %r2, %r2, 1; bra LOOP;")


@pytest.mark.toolchain
@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_launch_that_is_ended(host, ptx, tmp_path, end, code):
    """It prints why it is slow, where it and its warps are; the report has what was finished."""
    ptx.write_text(ENDLESS)
    command = [sys.executable, "-m", "kernelpack", "emulate", "--report", "report.json"]
    with started(
        [*command, host, "scale", ptx],
        cwd=tmp_path,
        env=os.environ | {"KERNELPACK_CACHE_DIR": str(FOLDER)},
        stderr=subprocess.PIPE,
    ) as running:
        why, first = running.stderr.readline(), running.stderr.readline()
        os.kill(running.pid, end)
        rest = running.stderr.read()
    assert f"{SLOWER}: more steps than the limit" in why
    assert "warp instructions in 5 s; now cta (0, 0, 0) warp 0 — ptx:" in first
    assert "stopped after" in rest
    assert "warps are at:\n  cta (0, 0, 0) warp 0 — ptx:" in rest
    assert "interrupted after 0 launches" in rest
    assert running.returncode == code
    assert json.loads((tmp_path / "report.json").read_text())["launches"] == []


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of watches."""
    made = Clock()
    monkeypatch.setattr("kernelpack.emulate.watching.time", made)
    return made


def test_a_line_every_few_seconds(clock):
    """It names the kernel, its warp instructions and the place; a short launch says nothing."""
    told: list[str] = []
    watching = Watching("_Z5scalePf", told.append, lambda: True)
    for clock.now in (1.0, TELL_SECONDS, TELL_SECONDS + 1, 2 * TELL_SECONDS):
        watching.look(7, lambda: "here")
    assert told == [f"scale: 7 warp instructions in {s} s; now here" for s in (5, 10)]


def test_why_it_takes_longer(clock):
    """Whoever waits for the Python engine is told once that it is that one, and why."""
    told: list[str] = []
    watching = Watching("scale", told.append, lambda: True)
    watching.again("more steps than the limit")
    for clock.now in (1.0, TELL_SECONDS, 2 * TELL_SECONDS):
        watching.look(7, lambda: "here")
    assert told[0] == f"scale: {SLOWER}: more steps than the limit"
    assert [line.split(";")[1] for line in told[1:]] == [" now here"] * 2


def test_a_launch_that_nobody_waits_for(clock):
    """It ends with the program that made it."""
    watching = Watching("scale", print, lambda: False)
    clock.now = 1.0
    with pytest.raises(Abandoned):
        watching.look(7, lambda: "here")
