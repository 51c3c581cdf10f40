# ruff: noqa: E501  (a table of programs: one a line)
"""Collectives whose lanes name each other: by groups, from several places, in vain."""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.kernel import launch, rules
from tests.emulator.semantics.programs.program import LANES, store

HALF = "shr.u32 %r2, %lane, 4; shl.b32 %r3, %r2, 4; mov.b32 %r4, 0xFFFF; shl.b32 %r4, %r4, %r3; setp.eq.u32 %p2, %r2, 0;"
"""%r2: which half of the warp, %r4: its mask, %p2: in the lower one."""
FULL = 0xFFFF_FFFF
LOW, HIGH = LANES[:16], LANES[16:]
EXCHANGES = [
    ("shfl idx", "shfl.sync.idx.b32 %r1|%p1, %lane, 5, 0x101F, %r4;", [5] * 16 + [21] * 16),
    ("shfl bfly", "shfl.sync.bfly.b32 %r1, %lane, 1, 31, %r4;", [lane ^ 1 for lane in LANES]),
    ("shfl up", "shfl.sync.up.b32 %r1, %lane, 1, 0x1000, %r4;", [0, *LOW[:-1], 16, *HIGH[:-1]]),
    ("shfl down", "shfl.sync.down.b32 %r1, %lane, 1, 0x101F, %r4;", [*LOW[1:], 15, *HIGH[1:], 31]),
    ("ballot", "vote.sync.ballot.b32 %r1, %p2, %r4;", [0xFFFF] * 16 + [0] * 16),
    ("any", "vote.sync.any.pred %p1, %p2, %r4; selp.b32 %r1, 1, 0, %p1;", [1] * 16 + [0] * 16),
    ("all", "vote.sync.all.pred %p1, !%p2, %r4; selp.b32 %r1, 1, 0, %p1;", [0] * 16 + [1] * 16),
    ("uni", "vote.sync.uni.pred %p1, %p2, %r4; selp.b32 %r1, 1, 0, %p1;", [1] * 32),
    ("match any", "and.b32 %r5, %lane, 1; match.any.sync.b32 %r1, %r5, %r4;", [0x5555, 0xAAAA] * 8 + [0x5555_0000, 0xAAAA_0000] * 8),
    ("match all", "match.all.sync.b32 %r1|%p1, %r2, %r4;", [0xFFFF] * 16 + [0xFFFF_0000] * 16),
    ("redux add", "redux.sync.add.u32 %r1, %lane, %r4;", [120] * 16 + [376] * 16),
    ("redux max", "redux.sync.max.s32 %r1, %lane, %r4;", [15] * 16 + [31] * 16),
    ("elect", "elect.sync %r1|%p1, %r4;", [0] * 16 + [16] * 16),
    ("bar.warp", "bar.warp.sync %r4; mov.b32 %r1, %lane;", LANES),
    ("activemask", "activemask.b32 %r1;", [FULL] * 32),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), EXCHANGES)
def test_lanes_that_run_together_are_grouped_by_mask(name: str, text: str, expected: list[int]):
    """Two masks at one instruction are two collectives."""
    result, out = launch(HALF + text + store(), level=Level.STRICT)
    assert (result.error, result.findings) == (None, ())
    assert expected == out[:32].tolist(), name


@pytest.mark.parametrize(("name", "text", "expected"), EXCHANGES[:-1])
def test_a_group_that_is_late_holds_up_no_other(name: str, text: str, expected: list[int]):
    """One lane of the upper half comes later than all others, by another way."""
    late = "setp.eq.u32 %p8, %lane, 20; @!%p8 bra GO; mov.u32 %r9, 0; bra SLOW; GO: "
    slow = "SLOW: add.u32 %r9, %r9, 1; setp.lt.u32 %p9, %r9, 9; @%p9 bra SLOW; bra GO; END:"
    body = HALF + late + text + store() + "bra END; " + slow
    result, out = launch(body, level=Level.STRICT)
    assert (result.error, result.findings) == (None, ())
    assert expected == out[:32].tolist(), name


@pytest.mark.parametrize(("name", "text", "expected"), EXCHANGES[:-1])
def test_members_may_come_from_two_places(name: str, text: str, expected: list[int]):
    """The instruction need not be the same one, only its qualifiers and the mask."""
    body = f"{HALF} setp.lt.u32 %p8, %lane, 7; @%p8 bra A; {text} bra B; A: {text} B: {store()}"
    result, out = launch(body, level=Level.STRICT)
    assert (result.error, result.findings) == (None, ())
    assert expected == out[:32].tolist(), name


def test_threads_that_have_exited_need_not_come():
    """An early return is no missing member."""
    body = f"setp.gt.u32 %p1, %lane, 9; @%p1 exit; redux.sync.add.u32 %r1, %lane, -1; {store()}"
    result, out = launch(body, level=Level.STRICT)
    assert (result.error, result.findings, out[0]) == (None, (), 45)


def test_threads_that_work_and_exit_need_not_come():
    """Neither is one that does something first, wherever it is in the text."""
    body = f"setp.gt.u32 %p1, %lane, 9; @%p1 bra OUT; redux.sync.add.u32 %r1, %lane, -1; {store()} bra END; OUT: {store('99')} ret; END:"
    result, out = launch(body, level=Level.STRICT)
    assert (result.error, result.findings) == (None, ())
    assert out[:32].tolist() == [45] * 10 + [99] * 22


def test_a_loop_left_early():
    """Lanes that leave a loop are missed by a mask that still names them; the others go on."""
    body = f"mov.u32 %r1, 0; L: bar.warp.sync -1; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %lane; @%p1 bra L; {store()}"
    result, out = launch(body)
    (finding,) = result.findings
    assert (finding.rule.name, finding.lane, result.error) == ("member-mask", 0, None)
    assert (
        finding.message
        == "the member mask 0xffffffff names lanes 0 to 1, which go on without this instruction"
    )
    assert [max(lane, 1) for lane in LANES] == out[:32].tolist()


UNDEFINED = [
    ("idx", "shfl.sync.idx.b32 %r1, %lane, 20, 31, 0xFFFF;", Level.WARN),
    ("bfly", "shfl.sync.bfly.b32 %r1, %lane, 16, 31, 0xFFFF;", Level.WARN),
    ("down", "shfl.sync.down.b32 %r1, %lane, 16, 31, 0xFFFF;", Level.STRICT),
]


@pytest.mark.parametrize(("mode", "text", "level"), UNDEFINED)
def test_a_source_outside_the_mask(mode: str, text: str, level: Level):
    """What it gives is undefined, here all ones; a reduction's last lanes may read such."""
    body = f"setp.lt.u32 %p1, %lane, 16; mov.b32 %r1, 0; @%p1 {text} {store()}"
    result, out = launch(body, level=Level.STRICT)
    assert [(f.rule.name, f.rule.level, f.lane) for f in result.findings] == [
        ("member-mask", level, 0)
    ], mode
    assert out[:32].tolist() == [FULL] * 16 + [0] * 16


def test_a_source_inside_the_mask():
    """A half that reduces itself by `bfly` reads nobody else."""
    body = f"setp.lt.u32 %p1, %lane, 16; mov.b32 %r1, 0; @%p1 shfl.sync.bfly.b32 %r1, %lane, 8, 31, 0xFFFF; {store()}"
    result, out = launch(body, level=Level.STRICT)
    assert (set(), 8) == (rules(result), out[0])


@pytest.mark.parametrize("members", ["0xFFFF", "-1"])
def test_who_disagrees_on_the_mask(members: str):
    """Lane 16 names others that name other lanes: nobody waits for ever, and it is reported."""
    body = f"setp.eq.u32 %p1, %lane, 16; mov.b32 %r4, {members}; @%p1 mov.b32 %r4, 0x1FFFF; bar.warp.sync %r4; {store('%lane')}"
    result, out = launch(body)
    assert (result.error, rules(result)) == (None, {"member-mask"})
    assert out[:32].tolist() == LANES
