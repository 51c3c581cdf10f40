# ruff: noqa: E501  (a table of programs: one a line)
"""For each rule a kernel that breaks it, and a near twin that does not.

The twins differ where `§` is: the first text is put there to break the rule, the second one to
keep it.
"""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.checks.twins import Twins, broken

INIT = """
  mov.u32 %r0, bar; setp.eq.u32 %p0, %thread, 0;
  @%p0 mbarrier.init.shared.b64 [%r0], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  bar.sync 0;
"""
FILL = "mov.u32 %r1, s; mad.lo.u32 %r2, %thread, 4, %r1; st.shared.b32 [%r2], %thread;"
WAIT = "L: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra L;"
ALLOC = """
  setp.eq.u32 %p0, %warp, 0;
  mov.u32 %r0, slot;
  @%p0 bra A; bra B;
A: tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;
B: bar.sync 0; ld.shared.b32 %r1, [%r0];
"""
FREE = """
  bar.sync 0; @!%p0 bra Z;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
Z:
"""
STORE = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%thread};"
WAIT_STORE = "tcgen05.wait::st.sync.aligned;"
STORE_TWO = "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {%thread, %thread};"
LOAD_TWO = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r3, %r4}, [%r1];"
PAIR_ALLOC = "barrier.cluster.arrive.relaxed; barrier.cluster.wait; mov.u32 %r0, slot; setp.eq.u32 %p0, %thread, 0; setp.eq.u32 %p1, %rank, 0; tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r0], 32; ld.shared.b32 %r1, [%r0];"
PAIR_FREE = "barrier.cluster.arrive; barrier.cluster.wait; tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 32;"
BULK_STORE = "setp.eq.u32 %p2, %thread, 0; @%p2 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 128; @%p2 cp.async.bulk.commit_group;"
DRAIN = "cp.async.bulk.wait_group 0;"
DESCRIPTORS = """
  mov.u32 %r5, s; shr.u32 %r6, %r5, 4; cvt.u64.u32 %rd1, %r6;
  or.b64 %rd1, %rd1, §;
"""

WORDS = "{%r3, %r4, %r5, %r6}"
VECTORS = [
    (f"ld.global.v4.b32 {WORDS}, [%in+§];", "4", "16"),
    (f"ld.global.nc.v4.f32 {WORDS}, [%in+§];", "8", "32"),
    ("ld.global.v2.b64 {%rd1, %rd2}, [%in+§];", "8", "16"),
    ("ld.global.v2.b16 {%r3, %r4}, [%in+§];", "2", "4"),
    ("ld.global.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [%in+§];", "16", "32"),
    ("ld.global.v8.b32 {%r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10}, [%in+§];", "16", "32"),
    ("ld.global.b128 %q0, [%in+§];", "8", "16"),
    ("st.global.v4.b32 [%out+§], {%r3, %r3, %r3, %r3};", "4", "16"),
    ("st.global.v2.b64 [%out+§], {%rd1, %rd1};", "8", "16"),
    ("st.global.b128 [%out+§], %q0;", "8", "16"),
    (f"mov.u32 %r1, s; ld.shared.v4.b32 {WORDS}, [%r1+§];", "8", "16"),
    ("mov.u32 %r1, s; st.shared.v2.b32 [%r1+§], {%r3, %r3};", "4", "8"),
    ("mov.u32 %r1, s; cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1; st.v4.b32 [%rd1+§], {%r3, %r3, %r3, %r3};", "8", "16"),
    (f"ld.v4.b32 {WORDS}, [%in+§];", "12", "0"),
    (".local .align 32 .b8 mem[80]; mov.u32 %r1, mem; st.local.v4.b32 [%r1+§], {%r3, %r3, %r3, %r3};", "8", "16"),
    (f"ld.param.v4.b32 {WORDS}, [p_map+§];", "4", "16"),
    (f"ld.v4.b32 {WORDS}, [%map+§];", "8", "16"),
    ("atom.global.add.v4.f32 {%r3, %r4, %r5, %r6}, [%out+§], {%r3, %r4, %r5, %r6};", "8", "16"),
    ("red.global.add.v2.f32 [%out+§], {%r3, %r4};", "4", "8"),
    ("red.global.add.noftz.v2.bf16x2 [%out+§], {%r3, %r4};", "4", "8"),
    ("atom.global.add.u64 %rd1, [%out+§], %rd2;", "4", "8"),
    ("mov.u32 %r1, s; cp.async.ca.shared.global [%r1+§], [%in], 8;", "4", "8"),
    ("mov.u32 %r1, s; cp.async.cg.shared.global [%r1], [%in+§], 16;", "8", "16"),
    ("mov.u32 %r1, s; mad.lo.u32 %r1, %lane, 16, %r1; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r1+§];", "8", "16"),
    ("mov.u32 %r1, s; mad.lo.u32 %r1, %lane, 16, %r1; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1+§], {%r3};", "8", "16"),
]  # fmt: skip
"""Accesses of several values at once: their address is a multiple of all of them together."""

TWINS = [
    Twins("bounds", "st.global.b32 [%mine+§], %thread;", "16384", "256"),
    Twins("bounds", "mov.u32 %r1, s; st.shared.b32 [%r1+§], %thread;", "-4", "4"),
    Twins("bounds", INIT + "mov.u32 %r1, s; st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1+§], %thread, [%r0];", "131072", "0"),
    Twins("misaligned", "ld.global.b32 %r1, [%in+§]; st.global.b32 [%mine], %r1;", "2", "4"),
    *[Twins("misaligned", body, bad, good) for body, bad, good in VECTORS],
    Twins("misaligned", "mov.u32 %r1, s; mapa.shared::cluster.u32 %r3, %r1, 1; st.shared::cluster.v2.b32 [%r3+§], {%thread, %thread}; barrier.cluster.arrive; barrier.cluster.wait;", "4", "8", grid=2, cluster=2),
    Twins("misaligned", INIT + "mov.u32 %r1, s; st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r1+§], {%thread, %thread, %thread, %thread}, [%r0];", "8", "16"),
    Twins("misaligned", INIT + "mov.u32 %r1, s; @%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1+§], [%r0];", "8", "16"),
    Twins("uninitialised", "mov.u32 %r1, s; § ld.shared.b32 %r3, [%r1]; st.global.b32 [%mine], %r3;", "", FILL),
    Twins("race", f"{FILL} § ld.shared.b32 %r3, [%r1]; st.global.b32 [%mine], %r3;", "", "bar.sync 0;", threads=64),
    Twins("race", f"{FILL} bar.sync 0; ld.shared.b32 %r3, [%r1]; § st.shared.b32 [%r2], %r3;", "", "bar.sync 0;", threads=64),
    Twins("race", "mov.u32 %r1, %ctaid.x; add.u32 %r2, %r1, %thread; § st.global.b32 [%mine], %r2;", "", "mad.wide.u32 %mine, %r1, 1024, %mine;", grid=2),
    Twins("race", f"{FILL} mapa.shared::cluster.u32 %r3, %r1, 0; § ld.shared::cluster.b32 %r4, [%r3]; st.global.b32 [%mine], %r4; barrier.cluster.arrive; barrier.cluster.wait;", "",
          "barrier.cluster.arrive; barrier.cluster.wait; mad.wide.u32 %mine, %rank, 1024, %mine;", grid=2, cluster=2),
    Twins("proxy-fence", f"{FILL} § bar.sync 0; {BULK_STORE} {DRAIN}", "", "fence.proxy.async;"),
    Twins("proxy-fence", f"{FILL} bar.sync 0; § {BULK_STORE} {DRAIN}", "fence.acq_rel.cta;", "fence.proxy.async.shared::cta;"),
    Twins("race", f"{FILL} fence.proxy.async; bar.sync 0; {BULK_STORE} § st.shared.b32 [%r2], 7; {DRAIN}", "", "cp.async.bulk.wait_group.read 0; bar.sync 0;"),
    Twins("race", f"{FILL} fence.proxy.async; bar.sync 0; {BULK_STORE} setp.§.u32 %p3, %thread, 0; @%p3 cp.async.bulk.wait_group.read 0; bar.warp.sync -1; st.shared.b32 [%r2], 7; {DRAIN}", "ne", "eq"),
    Twins("store-in-flight-at-exit", f"{FILL} fence.proxy.async; bar.sync 0; {BULK_STORE} §", "", DRAIN, schedule="lazy"),
    Twins("store-in-flight-at-exit", f"{FILL} fence.proxy.async; bar.sync 0; {BULK_STORE} @%p2 cp.async.bulk.wait_group.read §;", "1", "0", schedule="lazy"),
    Twins("race", f"""{INIT} mov.u32 %r1, s; @!%p0 bra W;
          mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 128;
          cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in], 128, [%r0];
          W: § mad.lo.u32 %r2, %thread, 4, %r1; ld.shared.b32 %r3, [%r2]; st.global.b32 [%mine], %r3; {WAIT}""", "", WAIT.replace("L", "M").replace("%p1", "%p3")),
    Twins("race", "mov.u32 %r0, bar; setp.eq.u32 %p0, %thread, 0; @%p0 mbarrier.init.shared.b64 [%r0], 64; § mbarrier.arrive.shared.b64 _, [%r0];", "", "bar.sync 0;", threads=64),
    Twins("mbarrier-not-initialised", f"{INIT} § mbarrier.arrive.shared.b64 _, [%r0+8];", "", "@%p0 mbarrier.init.shared.b64 [%r0+8], 32;"),
    Twins("mbarrier-count", f"{INIT} § mbarrier.arrive.shared.b64 _, [%r0];", "@%p0 mbarrier.init.shared.b64 [%r0+8], 0;", "@%p0 mbarrier.init.shared.b64 [%r0+8], 1;"),
    Twins("mbarrier-reinitialised", f"{INIT} § @%p0 mbarrier.init.shared.b64 [%r0], 2;", "", "@%p0 mbarrier.inval.shared.b64 [%r0]; bar.sync 0;"),
    Twins("mbarrier-lapped", f"{INIT} @%p0 mbarrier.arrive.shared.b64 _, [%r0]; {WAIT} § mbarrier.try_wait.parity.shared.b64 %p2, [%r0], 0;",
          "@%p0 mbarrier.arrive.shared.b64 _, [%r0]; @%p0 mbarrier.arrive.shared.b64 _, [%r0];", "", level=Level.STRICT),
    Twins("Deadlock", f"""{INIT} mov.u32 %r1, s; @!%p0 bra W;
          mbarrier.arrive.expect_tx.shared.b64 _, [%r0], §;
          cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in], 128, [%r0];
          W: {WAIT}""", "144", "128"),
    Twins("Deadlock", f"{INIT} § {WAIT}", "", "@%p0 mbarrier.arrive.shared.b64 _, [%r0];"),
    Twins("Deadlock", "setp.eq.u32 %p0, %warp, 0; @%p0 bar.sync 1, §;", "96", "32", threads=64),
    Twins("barrier-count", "bar.sync 1, §;", "48", "64", threads=64),
    Twins("barrier-count", "setp.eq.u32 %p0, %warp, 0; @%p0 bar.sync 1, 64; @!%p0 bar.sync 1, §;", "96", "64", threads=64),
    Twins("member-mask", "shfl.sync.bfly.b32 %r1, %thread, 1, 31, §;", "0x7FFFFFFF", "0xFFFFFFFF"),
    Twins("member-mask", "setp.lt.u32 %p1, %lane, 16; mov.b32 %r1, 0; @!%p1 bra A; shfl.sync.idx.b32 %r1, %lane, 3, 31, §; A: st.global.b32 [%mine], %r1;", "-1", "0xFFFF"),
    Twins("member-mask", "setp.lt.u32 %p1, %lane, 16; @!%p1 bra A; bar.warp.sync §; A: bar.sync 0; st.global.b32 [%mine], %r1;", "-1", "0xFFFF"),
    Twins("member-mask", "setp.lt.u32 %p1, %lane, 16; mov.b32 %r1, 0; @%p1 vote.sync.ballot.b32 %r1, %p1, §; st.global.b32 [%mine], %r1;", "-1", "0xFFFF"),
    Twins("warp-sync", f"{FILL} and.b32 %r3, %lane, 16; mov.b32 %r4, 0xFFFF; shl.b32 %r4, %r4, %r3; bar.warp.sync %r4; xor.b32 %r3, %r2, §; ld.shared.b32 %r4, [%r3]; st.global.b32 [%mine], %r4;", "64", "32", level=Level.STRICT),
    Twins("warp-sync", f"{FILL} fence.proxy.async; setp.lt.u32 %p3, %lane, §; @%p3 bar.warp.sync 0xFFFF; @!%p3 bar.warp.sync 0xFFFF0000; {BULK_STORE} {DRAIN}", "16", "16; bar.warp.sync -1", level=Level.STRICT),
    Twins("divergent", "setp.lt.u32 %p1, %thread, §; @!%p1 bra A; bar.sync 0; A: st.global.b32 [%mine], %thread;", "40", "32", threads=64),
    Twins("divergent", "and.b32 %r1, %thread, §; setp.eq.u32 %p1, %r1, 0; @!%p1 bra A; bar.sync 0; A: st.global.b32 [%mine], %thread;", "1", "32", threads=64),
    Twins("divergent", "setp.lt.u32 %p1, %thread, 40; @!%p1 bra A; bar.sync 0; A: § st.global.b32 [%mine], %thread;", "", "@!%p1 exit;", threads=64),
    Twins("divergent", "setp.lt.u32 %p1, %thread, §; @!%p1 bra A; mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, %r2}, {%r3}, {%r4}, {%r1, %r2}; A: st.global.b32 [%mine], %thread;", "8", "32"),
    Twins("divergent", "setp.lt.u32 %p1, %thread, §; @!%p1 bra A; barrier.cluster.arrive.aligned; A: barrier.cluster.wait; st.global.b32 [%mine], %thread;", "8", "32"),
    Twins("divergent", f"{ALLOC} {STORE} {WAIT_STORE} setp.lt.u32 %p2, %lane, §; @!%p2 bra C; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r3}}, [%r1]; tcgen05.wait::ld.sync.aligned; C: st.global.b32 [%mine], %lane; {FREE}", "8", "32"),
    Twins("cluster-barrier", "§ barrier.cluster.wait;", "", "barrier.cluster.arrive;"),
    Twins("cluster-barrier", "barrier.cluster.arrive; barrier.cluster.wait; § barrier.cluster.wait;", "", "barrier.cluster.arrive;"),
    Twins("cluster-barrier", "barrier.cluster.arrive; § barrier.cluster.arrive; barrier.cluster.wait;", "", "barrier.cluster.wait;"),
    Twins("tensor-memory-leak", f"{ALLOC} §", "", FREE),
    Twins("tensor-memory-dealloc", f"{ALLOC} bar.sync 0; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, §;", "64", "32"),
    Twins("tensor-memory-size", f"{ALLOC} tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], §; ld.shared.b32 %r4, [%r0]; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32; {FREE}", "48", "32"),
    Twins("tensor-memory-relinquished", f"§ {ALLOC} {FREE}", "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", ""),
    Twins("tensor-memory-group", f"{ALLOC} tcgen05.relinquish_alloc_permit.cta_group::§.sync.aligned; {FREE}", "2", "1"),
    Twins("tensor-memory-uninitialised", f"{ALLOC} § tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r3}}, [%r1]; tcgen05.wait::ld.sync.aligned; st.global.b32 [%mine], %r3; {FREE}", "", STORE + WAIT_STORE),
    Twins("tensor-memory-unallocated", f"{ALLOC} tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1+§], {{%thread}}; {WAIT_STORE} {FREE}", "40", "8"),
    Twins("tensor-memory-quadrant", f"{ALLOC} shl.b32 %r2, %warp, 21; add.u32 %r2, %r2, %r1; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2+§], {{%thread}}; {WAIT_STORE} {FREE}", "2097152", "0", threads=64),
    Twins("race", f"{ALLOC} {STORE} § tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r3}}, [%r1]; tcgen05.wait::ld.sync.aligned; {WAIT_STORE} st.global.b32 [%mine], %r3; {FREE}", "", WAIT_STORE),
    Twins("race", f"{ALLOC} {STORE} {WAIT_STORE} tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r3}}, [%r1]; § {FREE}", "", "tcgen05.wait::ld.sync.aligned;"),
    Twins("tensor-load-not-waited", f"{ALLOC} {STORE} {WAIT_STORE} tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r3}}, [%r1]; § st.global.b32 [%mine], %r3; {FREE}", "", "tcgen05.wait::ld.sync.aligned;", level=Level.STRICT),
    Twins("race", f"{ALLOC} {STORE_TWO} {WAIT_STORE} {LOAD_TWO} § {STORE_TWO} {WAIT_STORE} {FREE}", "mov.b32 %r5, %r3;", "mov.b64 %rd1, {%r3, %r4};"),
    Twins("race", f"{ALLOC} {STORE} {WAIT_STORE} tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r3}}, [%r1]; § {FREE}", "", "add.u32 %r4, %r3, %r3;", threads=64),
    Twins("race", f"{ALLOC} {STORE} § bar.sync 0; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r3}}, [%r1]; tcgen05.wait::ld.sync.aligned; {FREE}", "", WAIT_STORE, schedule="lazy"),
    Twins("tensor-memory-unallocated", f"{PAIR_ALLOC} shr.u32 %r6, %r2, 4; mov.b64 %rd1, 0x4000004000000040; and.pred %p2, %p0, %p1; @%p2 tcgen05.cp.cta_group::2.128x128b [%r1+§], %rd1; {PAIR_FREE}", "-8", "8", grid=2, cluster=2, schedule="starving:1:0"),
    Twins("Deadlock", "setp.eq.u32 %p0, %rank, §; @%p0 bra Z; " + PAIR_ALLOC + PAIR_FREE + "Z:", "1", "2", grid=2, cluster=2),
    Twins("wgmma-fence", "mov.b64 %rd1, 0x4000004000000040; mov.u32 %r1, s; mov.b32 %f0, 0; mov.b32 %f1, 0; mov.b32 %f2, 0; mov.b32 %f3, 0; setp.ne.u32 %p0, %r1, %r1; § wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, {%r1, %r1, %r1, %r1}, %rd1, %p0, 1, 1, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
          "", "wgmma.fence.sync.aligned;", threads=128, target="sm_90a"),
    Twins("wgmma-apart", "setp.lt.u32 %p0, %warp, §; @!%p0 bra E; wgmma.wait_group.sync.aligned 0; E: wgmma.fence.sync.aligned;", "1", "4", threads=128, target="sm_90a"),
    Twins("race", f"{FILL} mapa.shared::cluster.u32 %r3, %r1, 0; § barrier.cluster.arrive.relaxed; barrier.cluster.wait; ld.shared::cluster.b32 %r4, [%r3]; mad.wide.u32 %mine, %rank, 1024, %mine; st.global.b32 [%mine], %r4; barrier.cluster.arrive; barrier.cluster.wait;", "", "fence.acq_rel.cluster;", grid=2, cluster=2),
    Twins("warp-sync", f"{FILL} § xor.b32 %r3, %r2, 4; ld.shared.b32 %r4, [%r3]; st.global.b32 [%mine], %r4;", "", "bar.warp.sync -1;", level=Level.STRICT),
    Twins("warp-sync", f"{FILL} fence.proxy.async; § {BULK_STORE} {DRAIN}", "", "bar.warp.sync -1;", level=Level.STRICT),
    Twins("warp-sync", f"{FILL} fence.proxy.async; bar.sync 0; {BULK_STORE} @%p2 cp.async.bulk.wait_group.read 0; § st.shared.b32 [%r2], 7; {DRAIN}", "", "bar.warp.sync -1;", level=Level.STRICT),
    Twins("warp-fence", f"{FILL} setp.eq.u32 %p2, %thread, 0; § @%p2 fence.proxy.async; bar.warp.sync -1; {BULK_STORE} {DRAIN}", "", "bar.warp.sync -1;", level=Level.STRICT),
    Twins("mbarrier-fence", f"""mov.u32 %r0, bar; mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0;
          @%p0 mbarrier.init.shared.b64 [%r0], 1; § bar.sync 0; @!%p0 bra W;
          mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 128;
          cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in], 128, [%r0];
          W: {WAIT}""", "", "@%p0 fence.mbarrier_init.release.cluster;", level=Level.STRICT),
    Twins("cta-ended", f"{INIT} barrier.cluster.arrive; barrier.cluster.wait; mapa.shared::cluster.u32 %r3, %r0, 0; setp.eq.u32 %p1, %rank, 1; @%p1 mbarrier.arrive.shared::cluster.b64 _, [%r3]; §", "", "barrier.cluster.arrive; barrier.cluster.wait;", grid=2, cluster=2, schedule="starving:1:0"),
    Twins("tensor-fence", f"{ALLOC} {STORE} {WAIT_STORE} § bar.sync 0; tcgen05.fence::after_thread_sync; {FREE}", "", "tcgen05.fence::before_thread_sync;", threads=64, level=Level.STRICT),
    Twins("cta-pair", "setp.eq.u32 %p0, %thread, 0; mov.b64 %rd1, 0; mov.u32 %r1, 0; mov.u32 %r2, 0x8080490; @%p0 tcgen05.mma.cta_group::§.kind::f16 [%r1], %rd1, %rd1, %r2, %p0;", "2", "1"),
]  # fmt: skip


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: f"{t.rule}-{t.bad[:24] or 'missing'}")
def test_the_bad_twin_is_caught(twins: Twins):
    """The rule is named when it is broken."""
    assert twins.rule in broken(twins, twins.bad)


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: f"{t.rule}-{t.good[:24] or 'missing'}")
def test_the_good_twin_is_not(twins: Twins):
    """The rule is not named when it is kept."""
    assert twins.rule not in broken(twins, twins.good)
