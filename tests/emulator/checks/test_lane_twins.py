# ruff: noqa: E501  (tables of programs: one a line)
"""Twins of lanes that did not meet, and of what is written after it was read (PTX ISA 8.10)."""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.checks.twins import Twins, broken
from tests.emulator.kernel import launch, rules

MEET = "bar.warp.sync -1;"
INIT = """
  mov.u32 %r0, bar; mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0; @%p0 st.shared.b32 [%r1+512], 0;
  @%p0 mbarrier.init.shared.b64 [%r0], 1; @%p0 fence.mbarrier_init.release.cluster; bar.sync 0;
  setp.eq.u32 %p1, %lane, 0; mad.lo.u32 %r2, %lane, 4, %r1; setp.ne.u32 %p2, %warp, 0; @%p2 bra READ;
  st.shared.b32 [%r2], %thread;
"""
READ = """ bra Z;
READ: § ld.shared.b32 %r3, [%r2]; st.global.b32 [%mine], %r3; Z: bar.sync 0;
"""
WAIT = READ.replace("§", "L: mbarrier.try_wait.parity.shared.b64 %p3, [%r0], 0; @!%p3 bra L;")
POLL = READ.replace(
    "§", "L: ld.acquire.cta.shared.b32 %r4, [%r1+512]; setp.eq.u32 %p3, %r4, 0; @%p3 bra L;"
)
TWO = {"threads": 64, "level": Level.STRICT}
RELEASES = {
    "an arrival": f"@%p1 mbarrier.arrive.shared.b64 _, [%r0]; {WAIT}",
    "an elected lane": f"elect.sync _|%p4, -1; @%p4 mbarrier.arrive.shared.b64 _, [%r0]; {WAIT}",
    "a flag": f"@%p1 st.release.cta.shared.b32 [%r1+512], 1; {POLL}",
    "an atomic": f"@%p1 red.release.cta.shared.add.u32 [%r1+512], 1; {POLL}",
    "a fence and a flag": f"@%p1 fence.acq_rel.cta; @%p1 st.volatile.shared.b32 [%r1+512], 1; {POLL}",
}
ARRIVALS = [Twins("warp-sync", f"{INIT} § {body}", "", MEET, **TWO) for body in RELEASES.values()]
STRICT = Level.STRICT
ATOMICS = [
    Twins("warp-sync", "setp.eq.u32 %p0, %lane, 0; @%p0 st.global.b32 [%out], 5; § red.global.add.u32 [%out], 1;", "", MEET, level=STRICT),
    Twins("warp-sync", "setp.eq.u32 %p0, %lane, 0; red.global.add.u32 [%out], 1; § @%p0 st.global.b32 [%out], 5;", "", MEET, level=STRICT),
    Twins("warp-sync", "setp.eq.u32 %p0, %lane, 3; @%p0 red.global.add.u32 [%out], 1; § st.global.b32 [%out], 5;", "@!%p0", "@%p0", level=STRICT),
    Twins("warp-sync", "mov.u32 %r1, s; setp.eq.u32 %p0, %lane, 0; @%p0 st.shared.b32 [%r1], 5; § atom.shared.add.u32 %r2, [%r1], 1;", "", MEET, level=STRICT),
    Twins("warp-sync", "xor.b32 %r2, %lane, 1; mad.wide.u32 %rd2, %r2, 4, %out; st.global.b32 [%mine], 5; § ld.global.b32 %r3, [%rd2];", "", MEET, level=STRICT),
]  # fmt: skip

LEFT = "xor.b32 %r1, %thread, 32; mad.wide.u32 %rd1, %r1, 4, %out;"
BYTES = "cvt.u64.u32 %rd1, %warp; add.u64 %rd1, %rd1, %out; setp.eq.u32 %p0, %lane, 0; sub.u64 %rd2, %out, %rd1;"
OVERWRITTEN = [
    Twins("race", f"{LEFT} ld.global.b32 %r2, [%mine]; § st.global.b32 [%rd1], %r2;", "", "bar.sync 0;", threads=64),
    Twins("race", f"{LEFT} ld.global.b32 %r2, [%mine]; § red.global.add.u32 [%rd1], 1;", "", "bar.sync 0;", threads=64),
    Twins("race", "ld.global.b32 %r2, [%out]; § setp.eq.u32 %p0, %thread, 0; @%p0 st.global.b32 [%out], 1;", "", "bar.sync 0;", threads=64),
    Twins("race", f"{BYTES} ld.global.u8 %r2, [%rd1]; @%p0 st.global.u8 [%rd1§], %r2;", "+1", "", threads=64),
    Twins("race", "setp.eq.u32 %p0, %thread, 32; ld.global.v2.b32 {%r2, %r3}, [%in]; § @%p0 st.global.b32 [%in+4], 1;", "", "bar.sync 0;", threads=64),
    Twins("race", "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 1; ld.global.b32 %r2, [%out]; @%p0 st.global.b32 [%out+§], 1;", "0", "4", grid=2, threads=1),
]  # fmt: skip
BULK = """
  mov.u32 %r0, bar; mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0; @%p0 mbarrier.init.shared.b64 [%r0], 1;
  @%p0 fence.mbarrier_init.release.cluster; bar.sync 0; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 128;
  @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%out], 128, [%r0];
  § st.global.b32 [%mine], 1; L: mbarrier.try_wait.parity.shared.b64 %p3, [%r0], 0; @!%p3 bra L;
"""
LATER = "K: mbarrier.try_wait.parity.shared.b64 %p3, [%r0], 0; @!%p3 bra K;"
TWINS = [*ARRIVALS, *ATOMICS, *OVERWRITTEN, Twins("race", BULK, "", LATER)]


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: t.rule)
def test_the_bad_twin_is_caught(twins: Twins):
    """The rule is named."""
    assert twins.rule in broken(twins, twins.bad)


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: t.rule)
def test_the_good_twin_is_not(twins: Twins):
    """And no other rule either."""
    assert broken(twins, twins.good) == set()


def test_a_wait_of_one_lane_is_no_meeting():
    """The others have not met the lane that wrote, though one of them has heard of others."""
    body = """
      mov.u32 %r0, bar; mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0; @%p0 mbarrier.init.shared.b64 [%r0], 1; bar.sync 0;
      setp.eq.u32 %p1, %lane, 0; mad.lo.u32 %r2, %lane, 4, %r1; xor.b32 %r3, %lane, 1; mad.lo.u32 %r3, %r3, 4, %r1;
      @%p0 mbarrier.arrive.shared.b64 _, [%r0]; st.shared.b32 [%r2], %lane; @!%p1 bra A;
    L: mbarrier.try_wait.parity.shared.b64 %p3, [%r0], 0; @!%p3 bra L;
    A: § ld.shared.b32 %r4, [%r3];"""
    assert {"warp-sync"} == rules(launch(body.replace("§", ""), level=STRICT)[0])
    assert set() == rules(launch(body.replace("§", MEET), level=STRICT)[0])


SAME = "mov.u32 %r1, s; mov.b32 %r2, §; st.shared.b32 [%r1], %r2;"


@pytest.mark.parametrize(
    ("value", "level", "expected"),
    [("7", Level.WARN, set()), ("7", STRICT, {"race"}), ("%warp", Level.WARN, {"race"})],
)
def test_two_stores_of_one_value(value: str, level: Level, expected: set[str]):
    """Which of them is the last makes no difference: a race at strict alone."""
    result, _ = launch(SAME.replace("§", value), threads=64, level=level)
    assert rules(result) == expected


def test_an_index_that_names_no_target_ends_the_run():
    """It would lead anywhere."""
    result, _ = launch("T: .branchtargets A, B; brx.idx %lane, T; A: B:")
    assert "index 2 of 2 branch targets" in str(result.error)


def test_halves_of_a_word_are_two_places():
    """Lanes that each write and read their own exchange nothing."""
    body = ".reg .b16 %h<2>; mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 2, %r1; cvt.u16.u32 %h0, %lane; st.shared.b16 [%r2], %h0; ld.shared.b16 %h0, [%r2];"
    assert rules(launch(body, level=STRICT)[0]) == set()
