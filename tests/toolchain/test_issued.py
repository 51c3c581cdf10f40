"""How many machine instructions a line of PTX became."""

import pytest

from kernelpack.errors import CompileError
from kernelpack.spec.arch import Arch
from kernelpack.toolchain.issued import MachineCode, assemble
from kernelpack.toolchain.locate import find
from tests.verify.small import ptx

SM_100A = Arch("sm_100a")


def line_of(text: str, words: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if words in line)


def made(body: str) -> tuple[str, MachineCode]:
    text = ptx(body).text
    return text, assemble(text, "twice_32", find(), SM_100A)


def test_an_instruction_for_an_instruction() -> None:
    """A load, an addition and a store are one each."""
    text, found = made("add.f32 %f1, %f1, %f1;")
    lines = [line_of(text, words) for words in ("ld.global", "add.f32", "st.global")]
    assert [found.counts[line] for line in lines] == [1, 1, 1]


def test_a_division_is_many() -> None:
    text, found = made("div.rn.f32 %f1, %f1, 0f40400000;")
    assert found.counts[line_of(text, "div.rn")] > 4


def test_what_is_never_used_is_none() -> None:
    text, found = made("add.f32 %f2, %f1, %f1;")
    assert line_of(text, "add.f32") not in found.counts


def test_lines_of_the_source_are_not_counted() -> None:
    """Those of a `.loc` that the text has would mix with its own."""
    text = ptx(".loc 7 9999 0\n  add.f32 %f1, %f1, %f1;").text
    text = text.replace(".address_size 64", '.address_size 64\n.file 7 "k.cu"')
    found = assemble(text, "twice_32", find(), SM_100A)
    assert max(found.counts) <= len(text.splitlines())
    assert found.counts[line_of(text, "add.f32")] == 1


def test_a_local_array_is_no_loc() -> None:
    """`.local` begins as `.loc` does, and stays in the text."""
    body = ".local .align 8 .b8 depot[8];\n  mov.b64 %rd5, depot;\n  st.local.f32 [%rd5], %f1;"
    text, found = made(f"{body}\n  ld.volatile.local.f32 %f1, [%rd5];")
    assert found.counts[line_of(text, "ld.volatile")] == 1


@pytest.mark.parametrize("before", ["", ".reg .f32 %g; "])
def test_an_instruction_behind_a_brace_has_its_own_line(before: str) -> None:
    """So CUDA's headers write conversions; it is not counted as of the line before."""
    text, found = made(f"{{ {before}mul.rn.f32 %f1, %f1, 0f40400000;}}")
    lines = [line_of(text, words) for words in ("ld.global", "mul.rn")]
    assert [found.counts[line] for line in lines] == [1, 1]


def test_an_instruction_of_several_lines_stays_whole() -> None:
    """A register of its second line may look like the name of an instruction."""
    text, found = made(".reg .f32 twice;\n  add.f32\n  twice, %f1, %f1;\n  mov.f32 %f1, twice;")
    assert found.counts[line_of(text, "add.f32")] == 1


def test_registers_and_shared_memory_are_the_entrys() -> None:
    """`bar` is 8 bytes; a thread has a few registers. The device keeps 1,024 bytes more."""
    _, found = made("st.shared.f32 [bar], %f1;")
    assert found.shared_bytes % 1024 == 8
    assert 0 < found.registers < 32


def test_what_ptxas_refuses_is_an_error() -> None:
    with pytest.raises(CompileError, match="nonsense"):
        made("nonsense.f32 %f1;")
