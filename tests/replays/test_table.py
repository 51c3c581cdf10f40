"""Every report has a test, and every test that the table names is there."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.replays.table import REPLAYS

ROOT = Path(__file__).parents[2]
NAMED = sorted({name for replay in REPLAYS for name in replay.tests})


@cache
def names_in(path):
    """What a file is called, with no test, and each of its tests."""
    tree = ast.parse((ROOT / path).read_text())
    tests = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {path, *(f"{path}::{name}" for name in tests if name.startswith("test_"))}


@pytest.mark.parametrize("name", NAMED)
def test_the_test_is_there(name):
    """A test that was renamed or removed leaves no report without one."""
    assert name in names_in(name.partition("::")[0])


@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.seen)
def test_the_report_is_covered(replay):
    """A report has a rule and a test."""
    assert replay.tests
    assert replay.rule
