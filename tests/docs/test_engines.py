"""Instructions that the guide of `emulate` says the compiled engine does not run have no row."""

import re
from pathlib import Path

import pytest

CORE = Path("kernelpack/emulator/core")
GUIDE = Path("docs/guides/emulate.md")
NAMED = ("atom", "red", "redux", "match", "activemask", "sin", "cos", "wmma")
SAID = {"sin": "sine", "cos": "cosine"}
OTHERS = {"red.async"}
"""Begin as one of these, and have a row."""


def rows(core):
    """Every name that a row of the core takes."""
    text = "\n".join(path.read_text() for path in core.glob("*.cpp"))
    return set(" ".join(re.findall(r'^ROW\("([^"]+)"', text, re.MULTILINE)).split())


@pytest.mark.parametrize("name", NAMED)
def test_what_the_compiled_engine_does_not_run(request, name):
    """A row that comes must go from the guide."""
    root = request.config.rootpath
    found = rows(root / CORE)
    assert SAID.get(name, f"`{name}`") in (root / GUIDE).read_text()
    assert {"ld", "vote.sync"} < found
    assert name not in {row.partition(".")[0] for row in found - OTHERS}
