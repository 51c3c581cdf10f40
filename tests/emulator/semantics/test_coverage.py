"""Every row of the instruction table is run by some test of this folder."""

from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.semantics import families
from kernelpack.emulator.semantics.table import TABLE
from tests.emulator.kernel import text
from tests.emulator.semantics import (
    test_bitwise,
    test_compare,
    test_convert,
    test_floating,
    test_integer,
    test_map_changes,
    test_move,
    test_programs,
    test_wmma,
)
from tests.emulator.semantics.bench import program

TABLES = (test_integer, test_bitwise, test_floating, test_compare, test_convert, test_move)
NOT_MODELLED = {"alloca", "stacksave", "stackrestore"}
"""Rows that say by name that they are not modelled."""


def covered() -> set[str]:
    """The names of the rows that cases and programs use."""
    modules = [program(one.values[0]) for table in TABLES for one in table.CASES]
    modules += [text(one.body) for one in test_programs.PROGRAMS]
    modules += test_wmma.MODULES + test_map_changes.MODULES
    names: set[str] = set()
    for module in modules:
        for entry in parse(module).entries.values():
            for instruction in entry.body.instructions:
                if instruction.opcode not in ("bra", "brx", "ret", "exit"):
                    names.add(families.find(instruction).name)
    return names


def test_every_row_is_run():
    """A new row comes with a case or a program that runs it."""
    assert set() == set(TABLE.rows) - covered() - NOT_MODELLED
