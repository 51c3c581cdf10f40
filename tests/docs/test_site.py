"""The site: it builds strictly, shows every page and public name, and a dead link fails."""

import re
import subprocess
import sys

import pytest

from kernelpack import kv, ops, oracle
from tests.docs.pages import ROOT

PAGES = sorted(path.relative_to(ROOT / "docs") for path in (ROOT / "docs").glob("**/*.md"))
PUBLIC = [("ops", ops.__all__), ("kv", kv.__all__), ("oracle", oracle.__all__)]


def build(config, to):
    """What a strict build says, and its exit status."""
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(to)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site."""
    to = tmp_path_factory.mktemp("site")
    built = build(ROOT / "mkdocs.yml", to)
    assert built.returncode == 0, built.stderr
    return to


def test_every_page_is_there(site):
    """Pages of docs/, the README and CONTRIBUTING."""
    names = [path.with_name("index") if path.stem == "README" else path for path in PAGES]
    missing = [path for path in names if not (site / path).with_suffix(".html").exists()]
    assert missing == []
    assert (site / "index.html").exists()
    assert (site / "contributing.html").exists()


@pytest.mark.parametrize(("module", "names"), PUBLIC, ids=[module for module, _ in PUBLIC])
def test_public_names(site, module, names):
    """Each has its place in the API reference."""
    shown = set(re.findall(r'id="([\w.]+)"', (site / "reference/api.html").read_text()))
    assert [name for name in names if not any(_names(each, name) for each in shown)] == []
    assert {"kernelpack.load.load.load", "kernelpack.load.library.Library"} <= shown


def _names(place, name):
    return place.startswith("kernelpack.") and place.endswith(f".{name}")


def test_sources_are_pages(site):
    """A source that a page links to is a page, with its text."""
    page = (site / "source/examples/ladder/step1_copy/step1_copy.cu.j2.html").read_text()
    assert "Step 1: one TMA load" in page
    assert "source/examples/ladder/step1_copy" in (site / "guides/ladder.html").read_text()


def test_lists_are_lists(site):
    """A list below a line of text is one; a line of code that begins with a dash is none."""
    page = (site / "guides/ladder.html").read_text()
    assert "<li><strong>Hopper</strong>: a warpgroup" in page
    assert '<code><span class="gd">-    ptx::mbarrier_wait(full, 0);' in page


@pytest.mark.parametrize(
    ("links", "dead"),
    [(["there.md", "there.md#here"], []), (["nowhere.md", "there.md#gone"], ["nowhere", "gone"])],
)
def test_dead_links_fail(tmp_path, links, dead):
    """A link to a page or a heading that is not there ends a build."""
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.md").write_text("# Home\n\n" + " ".join(f"[link]({each})" for each in links))
    (pages / "there.md").write_text("# There\n\n## Here\n")
    config = tmp_path / "mkdocs.yml"
    inherits = f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: {pages}\n"
    config.write_text(inherits + "hooks: []\nplugins: []\n")
    built = build(config, tmp_path / "site")
    assert built.returncode == bool(dead)
    assert [name for name in ("nowhere", "gone") if name in built.stderr] == dead


def test_make():
    """`make docs` is the same build; with --quiet mkdocs counts no warnings."""
    assert "mkdocs build --strict\n" in (ROOT / "Makefile").read_text()
