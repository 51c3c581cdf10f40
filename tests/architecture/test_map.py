"""docs/architecture.md is the map of what is there."""

import re

import pytest

from tests.architecture.test_rows_and_doors import ALLOWED, ROOT, ROWS

MAP = (ROOT.parent / "docs" / "architecture.md").read_text()
FOLDERS = sorted(p.name for p in ROOT.iterdir() if p.is_dir() and (p / "__init__.py").exists())
PLACED = dict(re.findall(r"^\| (\d) \| (.+) \|$", MAP, re.MULTILINE))
"""The table's rows: number → text."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_is_on_the_map(folder):
    """A room is described, so that a reader finds it."""
    assert f"`kernelpack/{folder}/`" in MAP or f"`{folder}/`" in MAP


@pytest.mark.parametrize("folder", FOLDERS)
def test_rows_are_those_of_the_map(folder):
    """The map places each folder in the row of the test of rows."""
    row = next(index for index, parts in enumerate(ROWS) if folder in parts)
    assert f"`{folder}`" in PLACED[str(row)]


@pytest.mark.parametrize("folder", [name for name in ALLOWED if name in FOLDERS])
def test_imports_are_those_of_the_map(folder):
    """`a` = x + y on the map is what `a` may import."""
    told = re.search(rf"`{folder}` = ([\w +]+)", MAP)
    assert told
    assert set(told[1].strip().split(" + ")) <= ALLOWED[folder]
