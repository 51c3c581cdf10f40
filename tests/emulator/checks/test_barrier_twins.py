# ruff: noqa: E501  (tables of programs: one a line)
"""Twins of named barriers, and of registers that move between warpgroups."""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.checks.twins import Twins, broken
from tests.emulator.kernel import launch, rules

# -- named barriers --------------------------------------------------------------------------

PRODUCER = "setp.eq.u32 %p0, %warp, 0; @!%p0 bra C;"
CONSUMER = "bra E; C: bar.sync 1, 64; bar.arrive 2, 64; bar.sync 1, 64; E:"
NAMED = [
    Twins("barrier-arrive", f"{PRODUCER} bar.arrive 1, 64; § bar.arrive 1, 64; {CONSUMER}", "", "bar.sync 2, 64;", threads=64, schedule=schedule)
    for schedule in ("eager", "lazy", "starving:0:0", "starving:0:1")
] + [
    Twins("barrier-arrive", f"{PRODUCER} bar.arrive 1, 64; § bar.sync 1, 64; {CONSUMER}", "", "bar.sync 2, 64;", threads=64),
    # another barrier id does not order it
    Twins("barrier-arrive", f"{PRODUCER} bar.arrive 1, 64; bar.sync §, 64; bar.arrive 1, 64; bra E; C: setp.eq.u32 %p1, %warp, 2; @%p1 bra D; bar.sync 1, 64; bar.arrive 2, 64; bar.sync 1, 64; bra E; D: bar.arrive 3, 64; E:", "3", "2", threads=96),
    Twins("barrier-apart", "setp.eq.u32 %p0, %warp, 0; @!%p0 bra C; §; bra E; C: bar.sync 1, 64; E:", "bar.sync 1, 64", "bar.arrive 1, 64", threads=64, level=Level.STRICT),
    Twins("barrier-apart", "setp.eq.u32 %p0, %warp, 0; @!%p0 bra C; barrier.sync§ 1, 64; bra E; C: barrier.sync 1, 64; E:", ".aligned", "", threads=64, level=Level.STRICT),
    Twins("barrier-apart", "setp.eq.u32 %p0, %warp, 0; @!%p0 bra C; bar.red.popc.u32 %r1, 1, 64, %p0; bra E; C: §; E:", "bar.sync 1, 64", "bar.arrive 1, 64", threads=64, level=Level.STRICT),
    Twins("barrier-apart", "setp.eq.u32 %p0, %warp, 0; @%p0 bra C; bar.sync 0; bra E; C: § E:", "bar.sync 0;", "", threads=64, level=Level.STRICT),
    Twins("barrier-number", "mov.u32 %r1, §; barrier.sync %r1, 32;", "16", "15"),
    Twins("barrier-number", "setp.eq.u32 %p0, %warp, 0; @%p0 bar.arrive §, 64; @!%p0 bar.sync 15, 64; bar.sync 0;", "16", "15", threads=64),
]  # fmt: skip

# -- registers -------------------------------------------------------------------------------

GROUPS = "shr.u32 %r1, %warp, 2; setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r1, 2;"
MORE = "setmaxnreg.inc.sync.aligned.u32 §;"
LESS = "setmaxnreg.dec.sync.aligned.u32 §;"
REGISTERS = [
    # three warpgroups start with 168 registers each: 504 together
    Twins("Deadlock", f"{GROUPS} @%p0 bra P; setmaxnreg.inc.sync.aligned.u32 §; bra E; P: setmaxnreg.dec.sync.aligned.u32 40; E: bar.sync 0;", "240", "232", threads=384, schedule=schedule)
    for schedule in ("eager", "lazy", "starving:0:0")
] + [
    Twins("Deadlock", f"{GROUPS} @%p0 bra P; setmaxnreg.inc.sync.aligned.u32 232; bra E; P: {LESS} E: bar.sync 0;", "48", "40", threads=384),
    # one warp of the warpgroup that gives registers does not
    Twins("Deadlock", f"{GROUPS} setp.ge.u32 %p2, %warp, §; @%p2 bra M; setmaxnreg.dec.sync.aligned.u32 40; bra E; M: setp.lt.u32 %p3, %warp, 4; @%p3 bra E; setmaxnreg.inc.sync.aligned.u32 232; E: bar.sync 0;", "3", "4", threads=384),
    Twins("setmaxnreg-warpgroup", "setp.ge.u32 %p2, %warp, §; @%p2 bra E; setmaxnreg.dec.sync.aligned.u32 40; E: bar.sync 0;", "3", "4", threads=256),
    Twins("setmaxnreg-direction", f"setmaxnreg.dec.sync.aligned.u32 80; {LESS}", "96", "64", threads=128),
    Twins("setmaxnreg-direction", f"setmaxnreg.dec.sync.aligned.u32 80; {MORE}", "72", "96", threads=128),
]  # fmt: skip

# -- mbarriers as memory ---------------------------------------------------------------------

MADE = "mov.u32 %r0, bar; setp.eq.u32 %p0, %thread, 0; @%p0 mbarrier.init.shared.b64 [%r0], 1; @%p0 mbarrier.arrive.shared.b64 _, [%r0]; fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0;"
INVAL = "@%p0 mbarrier.inval.shared.b64 [%r0]; bar.sync 0;"
FILLED = "@%p0 mbarrier.init.shared.b64 [%r0+8], 1; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0+8], 16; @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0+16], [%in], 16, [%r0+8]; W: mbarrier.try_wait.parity.shared.b64 %p1, [%r0+8], 0; @!%p1 bra W;"
MBARRIERS = [
    Twins("mbarrier-as-data", f"{MADE} § @%p0 st.shared.b32 [%r0], 7;", "", INVAL),
    Twins("mbarrier-as-data", f"{MADE} § @%p0 st.shared.b8 [%r0+7], 7;", "", INVAL),
    Twins("mbarrier-as-data", f"{MADE} § @%p0 ld.shared.b64 %rd1, [%r0];", "", f"{INVAL} @%p0 st.shared.b64 [%r0], 0;"),
    Twins("mbarrier-as-data", f"{MADE} § @%p0 atom.shared.add.u32 %r1, [%r0+4], 1;", "", f"{INVAL} @%p0 st.shared.b32 [%r0+4], 0;"),
    Twins("mbarrier-as-data", f"{MADE} @%p0 mbarrier.init.shared.b64 [%r0+16], 1; § bar.sync 0; {FILLED}", "", "@%p0 mbarrier.inval.shared.b64 [%r0+16];"),
    # the second mbarrier at a place is another one
    Twins("race", f"{MADE} {INVAL} @%p0 mbarrier.init.shared.b64 [%r0], 64; § mbarrier.arrive.shared.b64 _, [%r0];", "", "bar.sync 0;", threads=64),
]  # fmt: skip

COUNTED = "mov.u32 %r0, bar; setp.eq.u32 %p0, %thread, 0; @%p0 mbarrier.init.shared.b64 [%r0], §; bar.sync 0;"
COPIED = "mov.u32 %r1, s; mad.lo.u32 %r1, %thread, 4, %r1; mad.wide.u32 %rd1, %thread, 4, %in; cp.async.ca.shared.global [%r1], [%rd1], 4;"
TOGETHER = [
    # the last lanes of a warp arrive in the phase after: who waits for this one misses them
    Twins("mbarrier-split-warp", f"{COUNTED} mbarrier.arrive.shared.b64 _, [%r0];", "31", "32"),
    Twins("mbarrier-split-warp", f"{COUNTED} mbarrier.arrive.shared.b64 _, [%r0];", "63", "64", threads=64),
    Twins("mbarrier-split-warp", f"{COUNTED} mbarrier.arrive.shared.b64 _, [%r0], 2;", "62", "64"),
    Twins("mbarrier-split-warp", f"{COUNTED} {COPIED} cp.async.mbarrier.arrive.noinc.shared.b64 [%r0]; cp.async.wait_all;", "31", "32"),
    # one lane a phase is not a warp
    Twins("mbarrier-split-warp", f"{COUNTED.replace('§', '1')} setp.lt.u32 %p0, %lane, §; @%p0 mbarrier.arrive.shared.b64 _, [%r0];", "2", "1"),
]  # fmt: skip

TWINS = [*NAMED, *REGISTERS, *MBARRIERS, *TOGETHER]


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: f"{t.rule}-{t.schedule}")
def test_the_bad_twin_is_caught(twins: Twins):
    """The rule is named when it is broken."""
    assert twins.rule in broken(twins, twins.bad)


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: f"{t.rule}-{t.schedule}")
def test_the_good_twin_is_not(twins: Twins):
    """Nothing at all is found when it is kept."""
    assert broken(twins, twins.good) == set()


@pytest.mark.parametrize(
    ("directives", "found"),
    [
        ("", {"setmaxnreg-ignored"}),
        (".maxntid 128, 1, 1", {"setmaxnreg-ignored"}),
        (".minnctapersm 1", {"setmaxnreg-ignored"}),
        (".maxntid 128, 1, 1 .minnctapersm 1", set()),
        (".reqntid 128, 1, 1 .minnctapersm 1", set()),
        (".maxnreg 168", set()),
    ],
)
def test_what_a_kernel_starts_with(directives: str, found: set[str]):
    """Where no directive says how many registers that is, ptxas drops the instruction."""
    result, _ = launch("setmaxnreg.dec.sync.aligned.u32 40;", threads=128, directives=directives)
    assert found == rules(result)


@pytest.mark.parametrize("warps", [11, 12])
def test_who_has_the_registers(warps: int):
    """A deadlock over registers says what is missing, and who has how many."""
    body = f"""setp.lt.u32 %p0, %warp, {warps}; @%p0 bra E; setmaxnreg.inc.sync.aligned.u32 176;
               E: bar.sync 0; setmaxnreg.inc.sync.aligned.u32 184;"""
    result, _ = launch(body, threads=384)
    assert "setmaxnreg.inc to 1" in str(result.error)
    assert "the CTA's pool has 0; its warps started with 168 and now have 168" in str(result.error)
