"""Commands in documents are commands that exist, with words and options that they take."""

import re

import pytest

from kernelpack.cli.main import verb
from tests.docs.pages import ROOT, commands, commands_of_make
from tests.kernels.own import own

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/guides/first-kernel.md",
    "docs/guides/own-kernel.md",
    "docs/guides/ladder.md",
    "docs/guides/serving.md",
    "docs/guides/scale.md",
    "docs/guides/predict.md",
)
DOCUMENTS = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))
SHOWN = [words for page in PAGES for words in commands(page)] + commands_of_make()


@pytest.mark.parametrize("words", SHOWN, ids=" ".join)
def test_command_parses(words, tmp_path, monkeypatch):
    """Its verb is there, and takes its words."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    own(tmp_path, stem="rms_norm")
    monkeypatch.chdir(tmp_path)
    name, *rest = words
    with verb(name).make_context(name, rest) as context:
        assert context.params


def test_commands_are_found():
    """The tour shows most verbs; the Makefile runs some."""
    assert {"build", "list", "ls", "check", "run"} <= {words[0] for words in commands("README.md")}
    assert {"build", "run"} <= {words[0] for words in commands_of_make()}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_exist(page):
    """`make X` in a page is a target of the Makefile."""
    asked = set(re.findall(r"\bmake (\w+)", (ROOT / page).read_text()))
    known = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert asked - known == set()


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        *(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md")),
    ],
)
def test_links_lead_somewhere(page):
    """A relative link names a file that is there."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / page).read_text())
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []
