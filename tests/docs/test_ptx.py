"""The guide to PTX of any compiler: its Python runs."""

import pytest

from tests.docs.pages import ROOT, blocks

PAGE = "docs/guides/ptx.md"


@pytest.fixture(scope="module")
def names():
    """What the page's Python made; every assertion of the page holds."""
    scope: dict = {}
    exec("\n".join(blocks(PAGE, "python")), scope)
    return scope


@pytest.mark.parametrize(("name", "dims"), [("a", (128, 64)), ("codes", (512, 64))])
def test_the_maps_of_the_page_are_maps(names: dict, name: str, dims: tuple[int, ...]):
    """They keep the rules of the TMA unit; two 4-bit elements are in a byte."""
    assert dims == names[name].at(1 << 20, name).dims


def test_readme_names_it():
    """Who looks for a guide finds it."""
    assert PAGE in (ROOT / "README.md").read_text()
