"""The reading guide names files that are there, and what is in them."""

import re

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "reading.md").read_text()
ROWS = re.findall(r"^\| \d+ \| (.+?) \|", PAGE, re.MULTILINE)
ELSEWHERE = re.findall(r"`((?:\w+/)+\w*\.?\w*)`", PAGE)
INCLUDE = "kernelpack/include/kernelpack"
BASES = (
    f"{INCLUDE}/detail",
    "",
    "templates/include/kp",
    "kernelpack",
    "kernelpack/emulator",
    INCLUDE,
)


def places(word, near):
    """The files or folders that a word of the page may mean; `near` was named before it."""
    bases = [
        ROOT / INCLUDE / "detail",
        *(ROOT / base for base in BASES),
        *([near.parent] if near else []),
    ]
    return [base / word for base in reversed(bases) if (base / word).exists()]


@pytest.mark.parametrize("row", ROWS)
def test_steps(row):
    """Each file of a step is there, and holds each name beside it."""
    words, near = re.findall(r"`([^`]+)`", row), None
    assert words
    for word in words:
        is_file = "." in word and word.rpartition(".")[2].islower() and places(word, near)
        if "/" in word or is_file:
            assert places(word, near), f"{word} is not there"
            near = places(word, near)[0]
        else:
            name = word.rpartition(".")[2]
            assert re.search(rf"\b{name}\b", near.read_text()), f"{near} has no {word}"


@pytest.mark.parametrize("path", sorted(set(ELSEWHERE)))
def test_paths(path):
    """Other paths of the page are there, too."""
    assert places(path, None)


def test_new_field():
    """Each file that the page names for a new field of manifests knows of its example."""
    steps = PAGE[PAGE.index("**A new field of manifests**") :]
    files = ["manifest/parts.py", "manifest/specialise.py", "spec/variant.py", "spec/launch.py"]
    files += ["bundle/format.py", "bundle/encode.py", "bundle/decode.py", "bundle/document.py"]
    files += [f"include/kernelpack/detail/{name}.hpp" for name in ("decode", "variant", "plan")]
    assert [f for f in files if f.rpartition("/")[2] not in steps] == []
    assert [f for f in files if "rogrammatic" not in (ROOT / "kernelpack" / f).read_text()] == []
