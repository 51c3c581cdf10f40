"""What is written from the code says what the code says."""

import pytest

from docs.generate import PAGES, REFERENCE
from kernelpack.cli.main import VERBS


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page_is_current(path):
    """A page, and the C++ loader's table of targets, is what docs/generate.py writes now."""
    assert path.read_text() == PAGES[path]()


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_a_section(name):
    """No verb is left out."""
    assert f"\n## kernelpack {name}\n" in (REFERENCE / "cli.md").read_text()
