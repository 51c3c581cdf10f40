# ruff: noqa: E501  (a table of programs: one a line)
"""Lanes of a warp, and barriers of a CTA and a cluster."""

import numpy as np

from tests.emulator.semantics.programs.program import FILL, LANES, Program, store

WARP = [
    Program(
        "shfl.bfly",
        f"shfl.sync.bfly.b32 %r1, %lane, 1, 31, -1; {store()}",
        [lane ^ 1 for lane in LANES],
    ),
    Program(
        "shfl.up keeps the first lanes",
        f"shfl.sync.up.b32 %r1, %lane, 2, 0, -1; {store()}",
        [0, 1, *LANES[:-2]],
    ),
    Program(
        "shfl.down keeps the last lanes",
        f"shfl.sync.down.b32 %r1|%p1, %lane, 2, 31, -1; {store()}",
        [*LANES[2:], 30, 31],
    ),
    Program(
        "shfl.idx in segments of 8",
        f"shfl.sync.idx.b32 %r1, %lane, 3, 0x181F, -1; {store()}",
        [lane // 8 * 8 + 3 for lane in LANES],
    ),
    *(
        Program(
            f"vote.{mode}.sync, the old order of words",
            f"setp.lt.u32 %p1, %lane, 5; vote.{mode}.sync.{kind}, %p1, -1; {use} {store()}",
            [expected] * 32,
        )
        for mode, kind, use, expected in (
            ("ballot", "b32 %r1", "", 0x1F),
            ("any", "pred %p2", "selp.b32 %r1, 1, 0, %p2;", 1),
            ("all", "pred %p2", "selp.b32 %r1, 1, 0, %p2;", 0),
            ("uni", "pred %p2", "selp.b32 %r1, 1, 0, %p2;", 0),
        )
    ),
    Program(
        "brx.idx leads each lane to its own target",
        f"""and.b32 %r2, %lane, 3; mov.b32 %r1, 9; setp.ne.u32 %p1, %lane, 31;
        T: .branchtargets A, B, C, D; @%p1 brx.idx %r2, T; bra E;
        A: mov.b32 %r1, 0; bra E; B: mov.b32 %r1, 10; bra E; C: mov.b32 %r1, 20; bra E; D: mov.b32 %r1, 30;
        E: bar.warp.sync -1; {store()}""",
        [*(10 * (lane % 4) for lane in LANES[:-1]), 9],
    ),
    Program(
        "vote.ballot",
        f"setp.lt.u32 %p1, %lane, 5; vote.sync.ballot.b32 %r1, %p1, -1; {store()}",
        [31] * 32,
    ),
    Program(
        "vote.all",
        f"setp.lt.u32 %p1, %lane, 5; vote.sync.all.pred %p2, %p1, -1; selp.b32 %r1, 1, 0, %p2; {store()}",
        [0] * 32,
    ),
    Program(
        "vote.any",
        f"setp.lt.u32 %p1, %lane, 5; vote.sync.any.pred %p2, %p1, -1; selp.b32 %r1, 1, 0, %p2; {store()}",
        [1] * 32,
    ),
    Program(
        "match.any",
        f"and.b32 %r2, %lane, 1; match.any.sync.b32 %r1, %r2, -1; {store()}",
        [0x5555_5555, 0xAAAA_AAAA] * 16,
    ),
    Program("match.all", f"match.all.sync.b32 %r1|%p1, %warp, -1; {store()}", [0xFFFF_FFFF] * 32),
    Program("redux.add", f"redux.sync.add.u32 %r1, %lane, -1; {store()}", [496] * 32),
    Program(
        "redux.max.f32 passes over NaN",
        f"cvt.rn.f32.u32 %f0, %lane; setp.eq.u32 %p1, %lane, 3; @%p1 mov.b32 %f0, 0x7FFFFFFF; redux.sync.max.f32 %r1, %f0, -1; {store()}",
        [int(np.float32(31).view(np.uint32))] * 32,
    ),
    Program("elect", f"elect.sync %r2|%p1, -1; selp.b32 %r1, 1, 0, %p1; {store()}", [1] + [0] * 31),
    Program(
        "diverged lanes meet again",
        f"setp.lt.u32 %p1, %lane, 7; mov.u32 %r1, 1; @%p1 bra A; mov.u32 %r1, 2; A: shfl.sync.idx.b32 %r2, %r1, 31, 31, -1; add.u32 %r1, %r1, %r2; {store()}",
        [3] * 7 + [4] * 25,
    ),
    Program(
        "a loop of unequal length",
        f"mov.u32 %r1, 0; A: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %lane; @%p1 bra A; {store()}",
        [max(lane, 1) for lane in LANES],
    ),
    Program(
        "calls of the device library are kept",
        f"{{.param .b64 param0; .param .b64 param1; .param .b32 retval0; st.param.b64 [param0+0], %in; st.param.b64 [param1+0], 0; call.uni (retval0), vprintf, (param0, param1); ld.param.b32 %r2, [retval0+0];}} {store('%thread')}",
        LANES,
    ),
    Program(
        "registers, dependencies and sleep are accepted",
        f"setmaxnreg.inc.sync.aligned.u32 232; setmaxnreg.dec.sync.aligned.u32 40; griddepcontrol.wait; griddepcontrol.launch_dependents; nanosleep.u32 20; pmevent 1; {store('%thread')}",
        LANES,
    ),
    Program(
        "a trap that is not reached",
        f"setp.gt.u32 %p1, %thread, 99; @%p1 trap; @%p1 brkpt; {store('%thread')}",
        LANES,
    ),
]

BARRIER = [
    Program(
        "bar.sync orders shared memory",
        f"{FILL} bar.sync 0; xor.b32 %r2, %thread, 32; mad.lo.u32 %r2, %r2, 4, %r29; ld.shared.b32 %r1, [%r2]; {store()}",
        [k ^ 32 for k in range(64)],
        threads=64,
    ),
    Program(
        "barrier.sync and arrive",
        f"setp.eq.u32 %p1, %warp, 0; @%p1 bra A; {FILL} barrier.arrive 1, 64; bra B; A: barrier.sync 1, 64; mov.u32 %r29, s; mad.lo.u32 %r28, %thread, 4, %r29; ld.shared.b32 %r1, [%r28+128]; {store()} B:",
        [k + 32 for k in LANES],
        threads=64,
    ),
    Program(
        "bar.arrive",
        "setp.eq.u32 %p1, %warp, 0; @%p1 bar.sync 1, 64; @!%p1 bar.arrive 1, 64; st.global.b32 [%mine], 1;",
        [1] * 64,
        threads=64,
    ),
    Program(
        "bar.cta.sync",
        "bar.cta.sync 0; barrier.cta.sync 0; setp.eq.u32 %p1, %warp, 0; @%p1 bar.cta.sync 1, 64; @!%p1 bar.cta.arrive 1, 64; @%p1 barrier.cta.sync 2, 64; @!%p1 barrier.cta.arrive 2, 64; st.global.b32 [%mine], 1;",
        [1] * 64,
        threads=64,
    ),
    Program(
        "bar.red counts",
        f"setp.lt.u32 %p1, %thread, 40; bar.red.popc.u32 %r1, 0, %p1; {store()}",
        [40] * 64,
        threads=64,
    ),
    Program(
        "barrier.red and bar.cta.red",
        f"setp.lt.u32 %p1, %thread, 40; barrier.red.and.pred %p2, 0, %p1; bar.cta.red.or.pred %p3, 0, %p1; barrier.cta.red.popc.u32 %r2, 0, %p3; selp.b32 %r1, 100, %r2, %p2; {store()}",
        [64] * 64,
        threads=64,
    ),
    Program(
        "threads that exited do not count",
        f"setp.ge.u32 %p1, %thread, 32; @%p1 exit; bar.sync 0; {store('%thread')}",
        LANES,
        threads=64,
    ),
    Program(
        "a cluster barrier orders distributed shared memory",
        f"{FILL} barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; xor.b32 %r3, %rank, 1; mapa.shared::cluster.u32 %r4, %r28, %r3; ld.shared::cluster.b32 %r1, [%r4]; mad.lo.u32 %r1, %rank, 100, %r1; mad.wide.u32 %mine, %rank, 128, %mine; {store()} barrier.cluster.arrive; barrier.cluster.wait;",
        [*LANES, *[k + 100 for k in LANES]],
        grid=2,
        cluster=2,
    ),
    Program(
        "lanes that arrive at a cluster barrier and exit stand in for nobody",
        "setp.ne.u32 %p1, %lane, 0; setp.eq.u32 %p2, %warp, 0; mov.u32 %r2, s; @!%p2 bra OTHERS; @!%p1 st.shared.b32 [%r2], 7; barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; bra END; OTHERS: barrier.cluster.arrive.release.aligned; @%p1 exit; barrier.cluster.wait.acquire; ld.shared.b32 %r1, [%r2]; shl.b32 %r3, %warp, 2; cvt.u64.u32 %rd1, %r3; add.u64 %mine, %out, %rd1; st.global.b32 [%mine], %r1; END:",
        [0, 7, 7],
        threads=96,
    ),
    Program(
        "lanes of a warp pass a cluster barrier apart",
        f"mov.u32 %r1, 0; setp.lt.u32 %p1, %lane, 5; mov.u32 %r2, 0; L: barrier.cluster.arrive; @%p1 bra A; add.u32 %r1, %r1, 2; barrier.cluster.wait; bra B; A: barrier.cluster.wait; add.u32 %r1, %r1, 1; B: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 3; @%p2 bra L; {store()}",
        [3 if lane < 5 else 6 for lane in LANES],
    ),
]
