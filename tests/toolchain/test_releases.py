"""The CUDA releases that come from PyPI."""

import re
import tomllib
from pathlib import Path

import pytest

from kernelpack.toolchain.releases import RELEASES

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize(("name", "extra"), [("cuda-13.4", "cu13"), ("cuda-12.9", "cu12")])
def test_the_repair_installs_what_the_extra_does(name: str, extra: str) -> None:
    """The command in an error and the package's own extra ask for the same wheels."""
    wanted = PROJECT["optional-dependencies"][extra][1:]
    assert re.findall(r"[\w-]+(?:\[[\w,]+\])?==[\d.]+", RELEASES[name].install) == wanted
