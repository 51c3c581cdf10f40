# ruff: noqa: E501  (a table of programs: one a line)
"""Loads, stores and atomics."""

import numpy as np

from tests.emulator.semantics.programs.program import LANES, Program, store

MEMORY = [
    Program(
        "global load and store",
        f"mad.wide.u32 %rd1, %thread, 4, %in; ld.global.b32 %r1, [%rd1]; {store()}",
        LANES,
    ),
    Program(
        "vector load and store",
        "mad.wide.u32 %rd1, %thread, 16, %in; mad.wide.u32 %rd2, %thread, 16, %out; ld.global.nc.L1::no_allocate.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1]; st.global.v4.b32 [%rd2], {%r1, %r2, %r3, %r4};",
        list(range(128)),
    ),
    Program(
        "b128 load and store",
        "mad.wide.u32 %rd1, %thread, 16, %in; mad.wide.u32 %rd2, %thread, 16, %out; ld.global.b128 %q0, [%rd1]; st.global.b128 [%rd2], %q0;",
        list(range(128)),
    ),
    Program(
        "a signed byte fills the register",
        f"mov.u32 %r2, s; st.shared.u8 [%r2], 0x80; bar.warp.sync -1; ld.shared.s8 %r1, [%r2]; {store()}",
        [0xFFFF_FF80] * 32,
    ),
    Program(
        "generic addresses reach shared memory",
        f"mov.u64 %rd1, s; cvta.shared.u64 %rd1, %rd1; mad.wide.u32 %rd1, %thread, 4, %rd1; st.b32 [%rd1], %thread; ld.b32 %r1, [%rd1]; {store()}",
        LANES,
    ),
    Program(
        "generic addresses reach local memory",
        f"{{.local .align 4 .b8 l[64]; mov.u64 %rd1, l; cvta.local.u64 %rd1, %rd1; st.b32 [%rd1+8], %lane; ld.local.b32 %r1, [l+8];}} {store()}",
        LANES,
    ),
    Program(
        "ldu", f"mad.wide.u32 %rd1, %thread, 4, %in; ldu.global.u32 %r1, [%rd1]; {store()}", LANES
    ),
    Program(
        "a masked store leaves the others alone",
        "setp.lt.u32 %p1, %lane, 4; @%p1 st.global.b32 [%mine], 7;",
        [7] * 4 + [0] * 28,
    ),
    Program(
        "hints",
        f"prefetch.global.L2 [%in]; prefetchu.L1 [%in]; discard.global.L2 [%in], 128; applypriority.global.L2::evict_normal [%in], 128; {store('%thread')}",
        LANES,
    ),
    Program(
        "fences",
        f"fence.acq_rel.gpu; membar.gl; membar.proxy.alias; fence.proxy.async; {store('%thread')}",
        LANES,
    ),
]

ATOMIC = [
    Program(
        "atom.add returns the old value, lane after lane",
        f"atom.global.add.u32 %r1, [%out+4096], 2; {store()}",
        [2 * lane for lane in LANES],
    ),
    Program(
        "atom.cas", f"atom.global.cas.b32 %r1, [%out+4096], %lane, 5; {store()}", [0] + [5] * 31
    ),
    Program(
        "atom.exch", f"atom.global.exch.b32 %r1, [%out+4096], %lane; {store()}", [0, *LANES[:-1]]
    ),
    Program(
        "atom.min of signed",
        f"mov.u32 %r2, -3; atom.global.min.s32 %r1, [%out+4096], %r2; {store()}",
        [0] + [0xFFFF_FFFD] * 31,
    ),
    Program(
        "atom.inc wraps",
        f"atom.global.inc.u32 %r1, [%out+4096], 2; {store()}",
        [k % 3 for k in LANES],
    ),
    Program(
        "atom.dec wraps",
        f"atom.global.dec.u32 %r1, [%out+4096], 2; {store()}",
        [0, 2, 1] * 10 + [0, 2],
    ),
    Program(
        "atom on shared memory",
        f"mov.u32 %r2, s; setp.eq.u32 %p1, %thread, 0; @%p1 st.shared.b32 [%r2], 0; bar.warp.sync 0xFFFFFFFF; atom.shared.or.b32 %r1, [%r2], 1; {store()}",
        [0] + [1] * 31,
    ),
    Program(
        "red.add of f32",
        "mov.f32 %f0, 1.5; red.global.add.f32 [%out], %f0;",
        [int(np.float32(48).view(np.uint32))],
    ),
    Program(
        "red.add.v2.f32",
        "mov.f32 %f0, 1.5; mov.f32 %f1, 1.0; red.global.add.v2.f32 [%out], {%f0, %f1};",
        [int(np.float32(x).view(np.uint32)) for x in (48, 32)],
    ),
    Program(
        "red.add.noftz.bf16x2",
        "mov.u32 %r1, 0x40003F80; red.global.add.noftz.bf16x2 [%out], %r1;",
        [
            int(np.float32(64).view(np.uint32)) & 0xFFFF_0000
            | int(np.float32(32).view(np.uint32)) >> 16
        ],
    ),
    Program("red.max.u64", "mov.u64 %rd1, 0x100000005; red.global.max.u64 [%out], %rd1;", [5, 1]),
]
