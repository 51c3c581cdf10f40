"""Code is generated once for layouts that differ in what it does not name."""

import pytest

from kernelpack.emulator.ptx.link import lay_out
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.translate.translate import translate
from tests.emulator.kernel import text

VARIABLES = ".global .align 4 .u32 named; .global .align 4 .u32 other;"


def code_at(program, named: int, other: int):
    """The code of the entry, with variables at these addresses."""
    entry = program.entry("test")
    return translate(entry, lay_out(program, entry, {"named": named, "other": other}, 0))


@pytest.fixture
def program():
    made = text("ld.global.b32 %r1, [named+4]; st.global.b32 [%mine], %r1;")
    return parse(made.replace(".visible .entry", f"{VARIABLES} .visible .entry", 1))


def test_another_place_of_what_is_not_named(program):
    assert code_at(program, 64, 128) is code_at(program, 64, 256)


def test_another_place_of_what_is_named(program):
    code = code_at(program, 128, 64)
    assert code is not code_at(program, 64, 64)
    assert code.layout.symbols["named"].address == 128
