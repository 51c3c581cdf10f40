"""Costs of small blocks, worked out by hand."""

import pytest

from kernelpack.emulator.ptx.parser import parse
from kernelpack.predict.blocks import GLOBAL, SHARED, Cost, Costs
from tests.verify.small import ptx

ADD = "add.f32 %f1, %f1, %f1;"


def costs(body: str, machine: dict[int, int] | None = None) -> tuple[Costs, int]:
    """Those of a kernel with this body, and where in it the body begins."""
    program = parse(ptx(body).text)
    instructions = program.entry("twice_32").body.instructions
    first = next(n for n, one in enumerate(instructions) if one.opcode == "ld" and n > 5) + 1
    return Costs(instructions, machine), first


def cost(body: str, count: int) -> Cost:
    found, first = costs(body)
    return found.of(first, count)


def test_a_chain_is_as_long_as_its_results_take() -> None:
    """Three dependent additions: the third one is issued 8 cycles after the first one."""
    found = cost(ADD * 3, 3)
    assert (found.slots, found.length) == (3, 8)


def test_what_does_not_depend_goes_on_at_once() -> None:
    found = cost(f"{ADD} add.u32 %r5, %r4, %r3; add.u32 %r6, %r4, %r3;", 3)
    assert (found.slots, found.length) == (3, 0)


@pytest.mark.parametrize(
    ("body", "late"),
    [("ex2.approx.f32 %f2, %f1;", 18), ("shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;", 24)],
)
def test_who_uses_a_slow_unit_goes_on_and_its_result_comes_later(body: str, late: int) -> None:
    found = cost(body, 1)
    assert found.length == 0
    assert list(found.late.values()) == [late]


def test_who_meets_others_issues_nothing_meanwhile() -> None:
    assert cost("bar.sync 0;", 1).length == 20


def test_special_functions_are_counted() -> None:
    assert cost("ex2.approx.f32 %f2, %f1; rcp.approx.f32 %f2, %f2;", 2).special == 2


def test_copies_of_registers_vanish() -> None:
    """ptxas renames them: no slot, and no latency in a chain."""
    found = cost(f"mov.b32 %f2, %f1; {ADD}", 2)
    assert (found.slots, found.length) == (1, 0)


def test_a_load_is_waited_for_where_it_is_used() -> None:
    """Four cycles remain once the load is there; the length is without it."""
    found = cost("ld.global.f32 %f2, [%rd3]; add.f32 %f3, %f2, %f2;", 2)
    assert found.waits == {GLOBAL: 4}
    assert set(found.loads.values()) == {GLOBAL}


def test_a_load_that_another_block_uses_is_not_waited_for() -> None:
    found = cost("ld.shared.f32 %f2, [bar];", 1)
    assert (dict(found.waits), set(found.loads.values())) == ({}, {SHARED})


def test_what_a_block_writes_first_it_does_not_use() -> None:
    """The index of %f1 alone."""
    one = cost("add.f32 %f2, %f1, %f1; add.f32 %f3, %f2, %f2;", 2)
    two = cost("add.f32 %f2, %f1, %f1;", 1)
    assert one.uses == two.uses
    assert len(one.uses) == 1


def test_machine_code_says_how_many_slots_a_line_takes() -> None:
    """Six of a line of PTX on which two instructions stand: three each."""
    made, first = costs(f"{ADD} {ADD}")
    line = made.instructions[first].line
    made, first = costs(f"{ADD} {ADD}", {line: 6})
    assert made.of(first, 1).slots == 3
    assert made.of(first, 2).slots == 6


@pytest.mark.parametrize(("machine", "length", "ends"), [({}, 0, False), (None, 8, True)])
def test_a_branch_that_became_predicates_does_not_block(
    machine: dict[int, int] | None, length: int, *, ends: bool
) -> None:
    """A line without machine code: ptxas made predicates of it. Without counts it is a branch."""
    made, first = costs("@%p1 bra DONE; DONE:", machine)
    found = made.of(first, 1)
    assert (found.length, found.ends) == (length, ends)


def test_an_address_is_made_of_what_leads_to_a_load() -> None:
    """Of %r3 and %rd1 by way of %rd3; not of %f1, which the same block adds up."""
    found = cost(
        f"{ADD} mad.wide.u32 %rd3, %r3, 4, %rd1; ld.global.f32 %f2, [%rd3]; add.f32 %f3, %f2, %f1;",
        4,
    )
    assert len(found.addresses) == 2
    assert found.addresses < found.uses


def test_no_load_needs_no_address() -> None:
    assert cost(ADD, 1).addresses == frozenset()
