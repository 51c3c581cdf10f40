"""Rows of warps and units, and the arrows between them."""

from dataclasses import replace

from kernelpack.emulator.trace import Unit
from kernelpack.verify.timeline.bars import Kind
from tests.verify.timeline.made import (
    COPIES,
    CTA,
    LOADER,
    MULTIPLIER,
    PIPE,
    drawn,
    operation,
    timeline,
    warp,
)


def names(chart):
    return [(row.name, row.note) for row in chart.rows]


def test_rows():
    """Warps come first, by their roles; then the pipe; then the copies, by their mbarriers."""
    assert names(drawn()) == [
        ("load", "warp 0"), ("multiply", "warp 1"), ("tensor pipe", ""), ("copies", "on 0x400"),
    ]  # fmt: skip


def test_a_warp_runs_and_waits():
    """A warp's bars are in order of time and named by the function and by the barrier."""
    bars = [(bar.begin, bar.end, bar.name) for bar in drawn().rows[0].bars]
    assert bars == [(0, 10, "load"), (10, 40, "0x408 phase 0"), (40, 50, "load")]


def test_a_warp_with_no_role_has_a_number():
    """Where no line says what a warp is for, its number is its name."""
    made = timeline()
    alone = replace(made, warps=(warp(0, 11, [(0, 5)], at=99),), units=(), operations=())
    (row,) = drawn(alone).rows
    assert (row.name, row.note, row.bars[0].name) == ("warp 11", "", "the end")


def test_arrows():
    """From each issue to its operation, and from what ended a wait to who waited."""
    arrows = [(a.source, a.begin, a.target, a.end, a.wakes, a.kind) for a in drawn().arrows]
    assert arrows == [
        (LOADER, 5, COPIES, 5, False, Kind.LOAD),
        (MULTIPLIER, 35, PIPE, 35, False, Kind.MULTIPLY),
        (PIPE, 40, LOADER, 40, True, Kind.MULTIPLY),
        (COPIES, 30, MULTIPLIER, 30, True, Kind.LOAD),
    ]


def test_what_only_one_warp_waits_for_is_in_its_row():
    """Loads of tensor memory belong to their warp: no row of their own, no arrow."""
    made = timeline()
    unit = Unit(agent=7, cta=CTA, name="tcgen05.ld of warp 1")
    load = operation(3, label="tcgen05.ld.sync.aligned.b32", unit=7, issued=41, done=44)
    chart = drawn(replace(made, units=(*made.units, unit), operations=(*made.operations, load)))
    assert len(chart.rows) == 4
    assert len(chart.arrows) == 4
    assert [(bar.begin, bar.name) for bar in chart.rows[1].own] == [(41, "tcgen05.ld")]


def test_ctas_stay_together():
    """Rows are by CTA, in the order in which CTAs started."""
    made = timeline()
    other = warp(8, 0, [(45, 48)], cta=(1, 0, 0))
    chart = drawn(replace(made, warps=(*made.warps, other)))
    assert [row.cta[0] for row in chart.rows] == [0, 0, 0, 0, 1]
    assert chart.ctas == (CTA, (1, 0, 0))


def test_warps_are_in_order_of_their_number():
    """Warp 10 comes after warp 2, not before it."""
    made = timeline()
    many = tuple(warp(index, index, [(index, index + 1)]) for index in range(12))
    chart = drawn(replace(made, warps=many, units=(), operations=()))
    assert [row.note for row in chart.rows] == [f"warp {index}" for index in range(12)]


def test_a_unit_that_did_nothing_has_no_row():
    """Only what happened is shown."""
    made = timeline()
    idle = Unit(agent=9, cta=CTA, name="the copies on mbarrier 0x500")
    assert names(drawn(replace(made, units=(*made.units, idle)))) == names(drawn())
