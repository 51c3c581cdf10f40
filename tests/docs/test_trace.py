"""The guide to traces: its command parses, and its pictures are of this version's making."""

import pytest

from kernelpack.cli.main import verb
from kernelpack.emulator.schedule import Schedule
from kernelpack.verify.timeline.ticks import STEPS
from tests.docs.pages import ROOT, commands

PAGE = "docs/guides/trace.md"
PICTURES = sorted((ROOT / "docs/pictures").glob("lora_*.svg"))  # others have their own page


@pytest.mark.parametrize("words", commands(PAGE), ids=" ".join)
def test_command_parses(words):
    """The verb takes the words."""
    name, *rest = words
    with verb(name).make_context(name, rest) as context:
        assert context.params["sizes"]


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_picture(path):
    """A picture is shown by the page, says what its time is, and is small."""
    text = path.read_text()
    assert f"(../pictures/{path.name})" in (ROOT / PAGE).read_text()
    assert STEPS.note in text
    assert len(text) < 100_000


@pytest.mark.parametrize("name", ["fair", "eager", "lazy"])
def test_schedules_are_told(name):
    """Every interleaving has its line."""
    assert f"\n| `{Schedule.parse(name).name}` |" in (ROOT / PAGE).read_text()
