"""`kernelpack emulate --predict`: a program's launches are predicted."""

import os
import subprocess
import sys

import pytest

from tests.emulate.conftest import host, libraries, ptx

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
