# ruff: noqa: E501  (tables of programs: one a line)
"""Twins of CTAs that use each other's barriers and hand each other data."""

import pytest

from tests.emulator.checks.twins import Twins, broken
from tests.emulator.kernel import launch, rules

WAIT = "L: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra L;"
WAIT_2 = WAIT.replace("%r0", "%r0+8").replace("L", "M")
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"
SCHEDULES = ("eager", "lazy", "starving:0:0", "starving:1:0")

# -- a cluster -------------------------------------------------------------------------------

INIT = """
  .reg .b16 %mask; mov.u16 %mask, 3;
  mov.u32 %r0, bar; mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0; setp.eq.u32 %p1, %rank, 1;
  and.pred %p2, %p0, %p1; setp.eq.u32 %p3, %rank, 0; and.pred %p3, %p0, %p3;
  mapa.shared::cluster.u32 %r2, %r0, 0; mapa.shared::cluster.u32 %r3, %r0, 1;
  mapa.shared::cluster.u32 %r4, %r1, 1; mad.lo.u32 %r5, %thread, 4, %r1;
  @%p0 mbarrier.init.shared.b64 [%r0], 1; @%p0 mbarrier.init.shared.b64 [%r0+8], 1;
  @%p0 fence.mbarrier_init.release.cluster;
"""
RELAXED_MEET = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"
EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 128;"
MULTICAST = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%in], 128, [%r0], %mask;"
TO_PEER = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4], [%r1], 128, [%r3];"
ASYNC_STORE = "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4], %thread, [%r3];"
COMMITTED = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r0], %mask;"
CANCEL = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%r1], [%r0];"
STAY = f"bar.sync 0; {MEET}"
INITIALISED = [
    Twins("race", f"{INIT} @!%p1 st.shared.b32 [%r5], %thread; fence.proxy.async; § {EXPECT if 'complete_tx' in first else ''} @%p3 {first} {STAY}", "", meet, grid=2, cluster=2, schedule="starving:0:0")
    for first in (MULTICAST, TO_PEER, ASYNC_STORE, COMMITTED, CANCEL, "mbarrier.arrive.shared::cluster.b64 _, [%r3];")
    for meet in (MEET, RELAXED_MEET)
]  # fmt: skip
"""CTA 0 uses the barrier of CTA 1, which had been initialised by luck."""
ALONE = [
    Twins("race", f"{INIT} § setp.eq.u32 %p4, %thread, 32; @%p4 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], 128; @%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in], 128, [%r0]; {STAY}", "", "bar.sync 0;", threads=64),
    Twins("race", f"{INIT} § setp.eq.u32 %p4, %thread, 32; @%p4 cp.async.mbarrier.arrive.noinc.shared.b64 [%r0]; {STAY}", "", "bar.sync 0;", threads=64),
]  # fmt: skip

WRITE = "mad.lo.u32 %r5, %thread, 16, %r1; @%p1 st.shared.v4.b32 [%r5], {%thread, %thread, %thread, %thread};"
SENT = "@%p2 mbarrier.arrive.release.§.shared::cluster.b64 _, [%r2];"
SENT_CTA, SENT_CLUSTER = (SENT.replace("§", scope) for scope in ("cta", "cluster"))
GOT = "@%p1 bra N; G: mbarrier.try_wait.parity.acquire.§.shared.b64 %p5, [%r0], 0; @!%p5 bra G;"
GOT_CTA, GOT_CLUSTER = (GOT.replace("§", scope) for scope in ("cta", "cluster"))
TAKE = f"mapa.shared::cluster.u32 %r6, %r5, 1; ld.shared::cluster.b32 %r7, [%r6]; N: {STAY}"
RELAXED_SENT = "@%p2 mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r2];"
OPERAND = f"""
  barrier.cluster.arrive.relaxed; barrier.cluster.wait;
  setp.eq.u32 %p6, %warp, 0; mov.u32 %r8, slot;
  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r8], 32; ld.shared.b32 %r9, [%r8];
  mov.b64 %rd1, 0x400800800040; {INIT} {MEET} mad.lo.u32 %r5, %thread, 16, %r1; st.shared.v4.b32 [%r5], {{%thread, %thread, %thread, %thread}}; fence.proxy.async;
"""
PAIR_COPY = f"@%p3 tcgen05.cp.cta_group::2.32x128b.warpx4 [%r9], %rd1; @%p3 {COMMITTED.replace('::1.m', '::2.m').replace('%r0', '%r0+8')} N: {WAIT_2} {STAY} tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r9, 32;"
SCOPES = [
    Twins("memory-order", f"{INIT} {MEET} {WRITE} § {GOT_CLUSTER} {TAKE}", SENT_CTA, SENT_CLUSTER, grid=2, cluster=2),
    Twins("memory-order", f"{INIT} {MEET} {WRITE} {SENT_CLUSTER} § {TAKE}", GOT_CTA, GOT_CLUSTER, grid=2, cluster=2),
    Twins("memory-order", f"{INIT} {MEET} {WRITE} § {GOT_CLUSTER} {TAKE}", SENT_CTA.replace(".release.cta", ""), SENT_CLUSTER, grid=2, cluster=2),
    Twins("memory-order", f"{INIT} {MEET} {WRITE} {SENT_CLUSTER} § {TAKE}", GOT_CTA.replace(".acquire.cta", ""), GOT_CLUSTER, grid=2, cluster=2),
    # a fence of the cluster makes up for the scope of the arrival, or of the wait
    Twins("memory-order", f"{INIT} {MEET} {WRITE} § {GOT_CLUSTER} {TAKE}", f"fence.acq_rel.cta; {RELAXED_SENT}", f"fence.acq_rel.cluster; {SENT_CTA}", grid=2, cluster=2),
    Twins("memory-order", f"{INIT} {MEET} {WRITE} {SENT_CLUSTER} {GOT_CTA} § {TAKE}", "fence.acq_rel.cta;", "fence.acq_rel.cluster;", grid=2, cluster=2),
    Twins("memory-order", f"{INIT} {MEET} {WRITE} § {GOT_CLUSTER} {TAKE}", RELAXED_SENT, f"fence.acq_rel.cluster; {RELAXED_SENT}", grid=2, cluster=2),
    # an operand of a pair: what a thread of the other CTA wrote
    Twins("memory-order", f"{OPERAND} § {GOT_CLUSTER} {PAIR_COPY}", SENT_CTA, SENT_CLUSTER, grid=2, cluster=2),
]  # fmt: skip

FREED = f"{INIT} {MEET} st.shared.b32 [%r5], %thread; @%p1 ld.shared.b32 %r7, [%r5]; {SENT_CTA} {GOT_CTA}"
BULK_TO_0 = "mapa.shared::cluster.u32 %r10, %r1, 0; @%p2 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r10], [%r1], 128, [%r2];"
LEFT_ALONE = [
    # an arrival that frees a buffer says nothing of data
    f"{FREED} add.u32 %r6, %r4, 4096; st.shared::cluster.b32 [%r4], 7; N: {STAY}",
    f"{FREED} fence.proxy.async; @%p3 {TO_PEER} N: {EXPECT.replace('%p0', '%p2')} @!%p1 bra Y; {WAIT} Y: {STAY}",
    # nor do copies between CTAs need a scope, whoever waits for them
    f"{INIT} {MEET} @%p1 st.shared.b32 [%r5], %thread; fence.proxy.async; bar.sync 0; {EXPECT.replace('%p0', '%p3')} {BULK_TO_0} {GOT_CTA} ld.shared.b32 %r7, [%r5]; N: {STAY}",
]
"""What one CTA does for another with arrivals and waits of `.cta` scope, and may."""

TWINS = [*INITIALISED, *ALONE, *SCOPES]


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: f"{t.rule}-{t.schedule}")
def test_the_bad_twin_is_caught(twins: Twins):
    """The rule is named when it is broken."""
    assert twins.rule in broken(twins, twins.bad)


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: f"{t.rule}-{t.schedule}")
def test_the_good_twin_is_not(twins: Twins):
    """Nothing at all is found when it is kept."""
    assert broken(twins, twins.good) == set()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("body", LEFT_ALONE)
def test_what_needs_no_scope(body: str, schedule: str):
    """Buffers are freed, and copies arrive, by the scope of a CTA."""
    result, _ = launch(body, grid=2, cluster=2, schedule=schedule)
    assert rules(result) == set()
