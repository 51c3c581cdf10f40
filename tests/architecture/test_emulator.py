"""Inside the emulator: hardware units know no instructions, checks know only what happens."""

import re
from pathlib import Path

import pytest

from tests.architecture.test_rows_and_doors import ROOT, imports

EMULATOR = ROOT / "emulator"
LEVELS = (
    {"faults"},
    {"rules"},
    {"events"},
    {"ptx", "machine"},
    {"models", "registers"},
    {"semantics"},
    {"translate"},
    {"calls"},
    {"schedule", "turn", "deadlock", "limits", "numbers", "rest", "watch", "collector"},
    {"core"},
    {"runner", "prepare"},
    {"run", "arguments"},
    {"arrays", "call"},
    {"__init__"},
)
"""Each level sees those before it; parts of one level are strangers."""

SEES = {"checks": {"events", "faults", "rules"}, "trace": {"events"}}
"""Checks and the recorder listen to events: one can be read, added and deleted by itself."""


def part_of(path: Path) -> str:
    return path.relative_to(EMULATOR).parts[0].removesuffix(".py")


def seen_by(part: str) -> set[str]:
    """The parts that a part may import."""
    if part in SEES:
        return SEES[part] | {part}
    level = next(index for index, parts in enumerate(LEVELS) if part in parts)
    below = set().union(*LEVELS[:level])
    return below | {part} | (set(SEES) if part in ("run", "call", "__init__") else set())


def inner(path: Path) -> set[str]:
    """The emulator's parts that a file imports."""
    found = [name.split(".") for name in imports(path)]
    return {words[2] for words in found if words[:2] == ["kernelpack", "emulator"] and words[2:]}


@pytest.mark.parametrize(
    "path", sorted(EMULATOR.rglob("*.py")), ids=lambda p: str(p.relative_to(EMULATOR))
)
def test_a_part_sees_the_levels_before_it(path: Path) -> None:
    """What happens ← program, state ← units ← instructions ← translation ← interleavings ← run."""
    assert inner(path) - seen_by(part_of(path)) == set()


def test_levels_are_those_of_the_map() -> None:
    """docs/architecture.md has the levels, one a line, the first one first."""
    page = (ROOT.parent / "docs" / "architecture.md").read_text()
    (block,) = re.findall(r"alone see them:\n\n```\n(.*?)```", page, re.DOTALL)
    assert [set(line.split()) for line in block.splitlines()] == list(LEVELS)
