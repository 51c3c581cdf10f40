"""The table of rules: whole, and the only place where a rule is made."""

import ast
from pathlib import Path

import pytest

import kernelpack.emulator.semantics.families  # noqa: F401 - fills the table of instructions
from kernelpack.emulator import rules
from kernelpack.emulator.semantics.table import TABLE
from kernelpack.errors import ProblemError

PACKAGE = Path(rules.__file__).parent
MADE = [
    path.relative_to(PACKAGE).as_posix()
    for path in PACKAGE.rglob("*.py")
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Rule"
]


def test_rows_differ():
    """A name may be at several levels or in several sections, each once."""
    rows = [(row.name, row.level, row.section) for row in rules.TABLE]
    assert len(set(rows)) == len(rows)


def test_nobody_else_makes_a_rule():
    """So a finding cites none, at no level and in no section, without a row."""
    assert MADE == ["rules.py"]


@pytest.mark.parametrize("row", rules.TABLE, ids=lambda row: f"{row.name}-{row.section}")
def test_a_row_says_what_is_wrong_and_how_to_mend_it(row):
    """In a clause each that can be in a table."""
    assert "." not in {row.what[-1], row.mend[-1]}
    assert "|" not in row.what + row.mend


CONVERGED = [op for op in TABLE.rows.values() if op.converged or "aligned" in op.flags]


@pytest.mark.parametrize("op", CONVERGED, ids=lambda op: op.name)
def test_every_instruction_of_a_whole_warp_has_a_row(op):
    """Some lanes may go on without it."""
    assert rules.DIVERGENT[op.section].name == "divergent"


def test_an_unknown_name_is_refused_with_the_nearest():
    """As it is in a file of expected findings."""
    with pytest.raises(ProblemError, match="did you mean `race`"):
        rules.of_name("rcae")
