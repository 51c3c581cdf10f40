"""The lint's rules on machine code that our compilers make: mistakes, and their near twins."""

from dataclasses import replace

import pytest

from kernelpack.machine_code.disassembler import find as find_disassembler
from kernelpack.machine_code.instruction import Kernel
from kernelpack.machine_code.lint import Findings, lint, rules
from kernelpack.machine_code.rules import RULES
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Source
from kernelpack.toolchain.elf import branches_of, code_of
from kernelpack.toolchain.frontend import compile as to_ptx
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.ptxas import assemble
from tests.machine_code.lint_sources import CAUGHT, CLEAN, cases

TARGET = Arch("sm_100a")


def machine_code(text: str) -> Kernel:
    toolchain = find()
    source = Source(variant_id="sample", entry="sample", name="sample.cu", text=text, headers=())
    cubin = assemble(to_ptx(source, toolchain, TARGET), toolchain, TARGET)
    return Kernel(
        entry="sample",
        target=TARGET.name,
        code=code_of(cubin.image, "sample"),
        branches=branches_of(cubin.image, "sample"),
    )


@pytest.fixture(scope="module")
def found() -> dict[str, Findings]:
    """What the lint says of every sample; all are disassembled together, as in a build."""
    sources = {name: text for name, (_, text) in CAUGHT.items()} | CLEAN
    disassembler = find_disassembler()
    assert disassembler
    findings = lint([machine_code(text) for text in sources.values()], disassembler)
    return dict(zip(sources, findings, strict=True))


@pytest.mark.toolchain
@pytest.mark.parametrize("name", CAUGHT)
def test_a_mistake_is_caught(found, name):
    """The rule that is broken is named, and no other."""
    assert [CAUGHT[name][0]] == [finding.rule.id for finding in found[name]]


@pytest.mark.toolchain
@pytest.mark.parametrize("name", CLEAN)
def test_a_near_twin_is_not(found, name):
    """A kernel that keeps the rules has no finding."""
    assert found[name] == ()


@pytest.mark.toolchain
def test_a_finding_says_where(found):
    """The offset of the instruction, the rule's id, and where to read why."""
    (finding,) = found["a pair that never met"]
    assert str(finding).startswith("allocates tensor memory for a pair of CTAs")
    assert str(finding).endswith(
        "[pair-before-peer; PTX ISA 9.1, 9.7.16.7.1; https://github.com/NVIDIA/cutlass/pull/3316]"
    )
    assert all(offset % 16 == 0 for offset in finding.offsets)


@pytest.mark.toolchain
@pytest.mark.parametrize(("listed", "expected"), [(True, []), (False, ["computed-branch"])])
def test_targets_of_a_jump_table(listed, expected):
    """A jump table is followed if the cubin lists its targets, and is a finding if not."""
    kernel = machine_code(cases(12))
    assert kernel.branches
    disassembler = find_disassembler()
    assert disassembler
    (found,) = lint([kernel if listed else replace(kernel, branches={})], disassembler)
    assert [finding.rule.id for finding in found] == expected


def test_every_rule_has_words():
    """What a rule finds can be said, and everything that can be said is looked for."""
    assert RULES.keys() == rules().keys()


def test_every_rule_has_a_mistake():
    """Each rule is shown to catch something; `test_targets_of_a_jump_table` shows the last."""
    assert {rule for rule, _ in CAUGHT.values()} | {"computed-branch"} == RULES.keys()


def test_every_severity_is_one_of_two():
    """A rule refuses or warns."""
    assert {rule.severity for rule in rules().values()} == {"refuse", "warn"}


def test_every_rule_names_its_source():
    """Nobody is refused without a place to read why."""
    assert [rule.id for rule in rules().values() if not rule.thread] == []
