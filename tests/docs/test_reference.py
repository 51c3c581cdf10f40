"""The reference pages say what the code says."""

import pytest

from docs.generate import PAGES, REFERENCE
from kernelpack.cli.main import VERBS


@pytest.mark.parametrize("name", PAGES)
def test_page_is_current(name):
    """A page is what docs/generate.py writes now: run it after a change."""
    assert (REFERENCE / name).read_text() == PAGES[name]()


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_a_section(name):
    """No verb is left out."""
    assert f"\n## kernelpack {name}\n" in (REFERENCE / "cli.md").read_text()
