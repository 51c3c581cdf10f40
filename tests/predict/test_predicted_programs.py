"""`kernelpack emulate --predict`: a program's launches are predicted."""

import json
import os
import subprocess
import sys

import pytest

from tests.emulate.conftest import host, libraries, ptx
from tests.emulate.images import SCALE

__all__ = ["host", "libraries", "ptx"]

pytestmark = pytest.mark.toolchain


def said(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kernelpack", "emulate", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)


def test_each_launch_has_a_time(libraries, host, ptx):
    """The program goes on; the one CTA that was recorded has done its work."""
    done = said("--predict", "b200", host, "scale", ptx)
    assert done.stdout == "0 3 0\n"
    assert "scale on NVIDIA B200: predicted " in done.stderr
    assert " us (" in done.stderr


def test_a_device_that_is_not_known(libraries, host, ptx):
    """It is refused before the program begins."""
    done = said("--predict", "b2000", host, "scale", ptx)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no device `b2000`" in done.stderr


def test_what_it_cannot_tell_is_said(libraries, host, ptx):
    """The lines that end a prediction end the program's predictions too; steps are real ones."""
    lines = said("--predict", "b200", host, "scale", ptx).stderr.splitlines()
    at = lines.index("cannot tell:")
    assert lines[at - 1].startswith("only a few clusters of what was predicted ran")
    assert "only published times of others were compared" in lines[-2]
    assert not [line for line in lines if ": 0 warp instructions" in line]


def test_predictions_for_programs(libraries, host, ptx):
    """The numbers of `predict --json`, a row a launch."""
    told = json.loads(said("--predict", "b200", "--json", host, "scale", ptx).stdout)
    (one,) = told["predictions"]
    assert (one["kernel"], one["device"], one["grid"]) == ("scale", "b200", [1, 1, 1])
    assert one["low"] <= one["microseconds"] <= one["high"]
    assert told["not_told"]
    assert told["steps"] == told["launches"][0]["steps"] > 0


@pytest.mark.parametrize("words", [["--device", "b200"], ["--schedule", "lazy"], ["--seed", "1"]])
def test_options_about_runs(words, host, ptx):
    """Nothing of it is asked by a prediction, so it is refused and not left unsaid."""
    done = said("--predict", "b200", *words, host, "scale", ptx)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{words[0]} says nothing to --predict" in done.stderr


def test_a_launch_that_does_not_end(libraries, host, ptx):
    """It is given up after --max-steps, and the program gets to know."""
    ptx.write_text(SCALE.replace("ret;", "LOOP: add.u32 %r2, %r2, 1; bra LOOP;"))
    done = said("--predict", "b200", "--max-steps", "2000", host, "scale", ptx)
    assert done.returncode != 0
    assert "more than 2000 warp instructions in a cluster" in done.stderr
