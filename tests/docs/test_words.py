"""Words: no phrase that an earlier review found hard to read, and short changelog fragments."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "changelog.d/*.md")
SOURCES = ("kernelpack/**/*.[ch]pp", "kernelpack/**/*.py", "manifests/*", "templates/**/*.*")
FRAGMENTS = sorted((ROOT / "changelog.d").glob("*.md"))
MOST_WORDS = 30
IN_CODE, SENTENCE_END = re.compile(r"`[^`]*`"), re.compile(r"[.!?](?:\s|$)")


def texts(patterns: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The path and the text of each file, on one line."""
    for path in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
        if path.is_file() and "__pycache__" not in path.parts:
            yield str(path.relative_to(ROOT)), " ".join(path.read_text().split())


@pytest.mark.parametrize(
    ("phrase", "instead"),
    [
        (r"\bheld against\b", "checked against"),
        (
            r"\bholds? (?:it|them|each|every|a|an|the|its) [\w ]{0,40}\bagainst\b",
            "checks … against",
        ),
        (r"(?<![Tt]here )\b(?:is|are) none of\b", "is not one of"),
        (r"\b(?:is|are|was|were) told\b", "gets, is reported, learns"),
        (r"(?<![\w.])(?:tells?|told) of\b", "reports"),
        (r"\bin the place of\b", "instead of"),
        (r"\bone behind the other\b", "one after the other"),
        (r"\bbehind which\b", "after which"),
        (r"\b[Ww]hat came of\b", "the outcome of"),
        (r"\bmust be a number from\b", "must be an integer of at least"),
    ],
)
def test_hard_phrases_stay_away(phrase, instead):
    """Pages, messages and comments say it in usual words."""
    found = [path for path, text in texts(PAGES + SOURCES) if re.search(phrase, text)]
    assert found == [], f"write `{instead}`"


def test_a_changelog_fragment_is_one_short_sentence():
    """A user reads a line of the changelog in one go."""
    fragments = {path: IN_CODE.sub("code", path.read_text().strip()) for path in FRAGMENTS}
    assert [path.name for path, text in fragments.items() if not is_short(text)] == []


def is_short(text: str) -> bool:
    """Whether it is one sentence of few words; code counts as a word."""
    return len(SENTENCE_END.findall(text)) == 1 and len(text.split()) <= MOST_WORDS
