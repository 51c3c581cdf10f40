# ruff: noqa: E501  (a table of programs: one a line)
"""mbarriers, and the copies that complete on them or are waited for in groups."""

from tests.emulator.semantics.programs.program import (
    FILL,
    GET,
    INIT,
    LANES,
    PUT_DRAIN,
    WAIT,
    Program,
    store,
)

MBARRIER = [
    Program(
        "a phase completes when all arrived",
        f"mov.u32 %r30, bar; setp.eq.u32 %p0, %thread, 0; @%p0 mbarrier.init.shared.b64 [%r30], 32; bar.sync 0; mbarrier.arrive.shared.b64 %rd1, [%r30]; V: mbarrier.try_wait.shared.b64 %p1, [%r30], %rd1; @!%p1 bra V; {store('%thread')}",
        LANES,
    ),
    Program(
        "test_wait does not block",
        f"{INIT} mbarrier.test_wait.parity.shared.b64 %p1, [%r30], 0; mbarrier.test_wait.parity.shared.b64 %p2, [%r30], 1; selp.b32 %r1, 1, 0, %p1; selp.b32 %r2, 2, 0, %p2; add.u32 %r1, %r1, %r2; {store()}",
        [2] * 32,
    ),
    Program(
        "expect_tx and complete_tx",
        f"{INIT} @%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r30], 64; @%p0 mbarrier.arrive.shared.b64 _, [%r30]; @%p0 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r30], 64; {WAIT} {store('%thread')}",
        LANES,
    ),
    Program(
        "pending_count",
        f"{INIT} @%p0 mbarrier.arrive.shared.b64 %rd1, [%r30]; mbarrier.pending_count.b64 %r1, %rd1; @!%p0 mov.u32 %r1, 9; {store()}",
        [1] + [9] * 31,
    ),
    Program(
        "arrive_drop lowers the next phase",
        f"mov.u32 %r30, bar; setp.eq.u32 %p0, %thread, 0; @%p0 mbarrier.init.shared.b64 [%r30], 2; bar.sync 0; @%p0 mbarrier.arrive_drop.shared.b64 _, [%r30]; @%p0 mbarrier.arrive.shared.b64 _, [%r30]; {WAIT} @%p0 mbarrier.arrive.shared.b64 _, [%r30]; U: mbarrier.try_wait.parity.shared.b64 %p2, [%r30], 1; @!%p2 bra U; @%p0 mbarrier.inval.shared.b64 [%r30]; {store('%thread')}",
        LANES,
    ),
]

COPY = [
    Program(
        "cp.async waits by group",
        f"mov.u32 %r29, s; mad.lo.u32 %r28, %thread, 4, %r29; mad.wide.u32 %rd1, %thread, 4, %in; cp.async.ca.shared.global [%r28], [%rd1], 4; cp.async.commit_group; cp.async.wait_group 0; ld.shared.b32 %r1, [%r28]; {store()}",
        LANES,
    ),
    Program(
        "cp.async fills with zeros",
        f"mov.u32 %r29, s; mad.lo.u32 %r28, %thread, 16, %r29; mad.wide.u32 %rd1, %thread, 16, %in; cp.async.cg.shared.global [%r28], [%rd1], 16, 4; cp.async.wait_all; ld.shared.b32 %r1, [%r28]; ld.shared.b32 %r2, [%r28+4]; add.u32 %r1, %r1, %r2; {store()}",
        [4 * k for k in LANES],
    ),
    Program(
        "cp.async arrives on an mbarrier",
        f"mov.u32 %r30, bar; setp.eq.u32 %p0, %thread, 0; @%p0 mbarrier.init.shared.b64 [%r30], 32; bar.sync 0; mov.u32 %r29, s; mad.lo.u32 %r28, %thread, 4, %r29; mad.wide.u32 %rd1, %thread, 4, %in; cp.async.ca.shared.global [%r28], [%rd1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r30]; {WAIT} xor.b32 %r28, %r28, 4; ld.shared.b32 %r1, [%r28]; {store()}",
        [k ^ 1 for k in LANES],
    ),
    Program(
        "a bulk copy completes on its mbarrier",
        f"{INIT} mov.u32 %r29, s; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 128; cp.async.bulk.prefetch.L2.global [%in], 128; @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r29], [%in], 128, [%r30]; {WAIT} {GET} {store()}",
        LANES,
    ),
    Program(
        "a bulk store",
        f"{FILL} fence.proxy.async; bar.sync 0; setp.eq.u32 %p1, %thread, 0; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r29], 128; {PUT_DRAIN}",
        LANES,
    ),
    Program(
        "a bulk reduction",
        f"{FILL} fence.proxy.async; bar.sync 0; setp.eq.u32 %p1, %thread, 0; @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%r29], 128; @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%r29], 128; {PUT_DRAIN}",
        [2 * k for k in LANES],
    ),
    Program(
        "a bulk copy to another CTA",
        f"{INIT} {FILL} @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 128; fence.proxy.async; barrier.cluster.arrive; barrier.cluster.wait; xor.b32 %r3, %rank, 1; mapa.shared::cluster.u32 %r4, %r29, %r3; mapa.shared::cluster.u32 %r5, %r30, %r3; add.u32 %r4, %r4, 1024; @%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4], [%r29], 128, [%r5]; {WAIT} ld.shared.b32 %r1, [%r28+1024]; mad.wide.u32 %mine, %rank, 128, %mine; {store()} barrier.cluster.arrive; barrier.cluster.wait;",
        LANES * 2,
        grid=2,
        cluster=2,
    ),
    Program(
        "st.async and red.async",
        f"{INIT} {FILL} @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 256; barrier.cluster.arrive; barrier.cluster.wait; xor.b32 %r3, %rank, 1; mapa.shared::cluster.u32 %r4, %r28, %r3; mapa.shared::cluster.u32 %r5, %r30, %r3; st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4+1024], %lane, [%r5]; red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4], 100, [%r5]; {WAIT} ld.shared.b32 %r1, [%r28+1024]; ld.shared.b32 %r2, [%r28]; add.u32 %r1, %r1, %r2; mad.wide.u32 %mine, %rank, 128, %mine; {store()} barrier.cluster.arrive; barrier.cluster.wait;",
        [2 * k + 100 for k in LANES] * 2,
        grid=2,
        cluster=2,
    ),
]
