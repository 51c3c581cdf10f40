# ruff: noqa: E501  (a table of programs: one a line)
"""wgmma, mma.sync and the loads and stores of matrices."""

import ml_dtypes
import numpy as np

from tests.emulator.semantics.programs.operands import COPY_IN, cores, descriptor
from tests.emulator.semantics.programs.program import LANES, Program, store

WG_N = 8
WG_IN = np.zeros(4096, np.uint32)
WG_A = (np.arange(64 * 16) % 7 - 3).astype(ml_dtypes.bfloat16).reshape(64, 16)
WG_B = (np.arange(8 * 16) % 5 - 2).astype(ml_dtypes.bfloat16).reshape(8, 16)
WG_IN[:512] = cores(WG_A)
WG_IN[1024 : 1024 + 64] = cores(WG_B)
WG_PRODUCT = (WG_A.astype(np.float64) @ WG_B.astype(np.float64).T).astype(np.float32)
WGMMA = [
    Program(
        "wgmma of bf16",
        f"{COPY_IN} fence.proxy.async; bar.sync 0; {descriptor('%rd1', 0, 1024, 128, 0)} {descriptor('%rd2', 4096, 128, 128, 0)} "
        "mov.b32 %f0, 0; mov.b32 %f1, 0; mov.b32 %f2, 0; mov.b32 %f3, 0; setp.eq.u32 %p1, %thread, %thread; "
        "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, %p1, 1, 1, 0, 0; "
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; st.global.b32 [%mine], %f3;",
        [
            int(WG_PRODUCT[16 * (t // 32) + t % 32 // 4 + 8, 2 * (t % 4) + 1].view(np.uint32))
            for t in range(128)
        ],
        threads=128,
        inputs=WG_IN,
        target="sm_90a",
    ),
]

MS_A = (np.arange(16 * 16) % 7 - 3).astype(np.float16).reshape(16, 16)
MS_B = (np.arange(16 * 8) % 5 - 2).astype(np.float16).reshape(8, 16)
MS_IN = np.zeros(4096, np.uint32)
MS_IN[:128] = MS_A.reshape(-1).view(np.uint32)
MS_IN[128:192] = MS_B.reshape(-1).view(np.uint32)
MS_PRODUCT = (MS_A.astype(np.float64) @ MS_B.astype(np.float64).T).astype(np.float32)


def vector(name: str, count: int, *, same: bool = False) -> str:
    """So many registers, or one of them as often."""
    return ", ".join(f"{name}{0 if same else i}" for i in range(count))


MATRIX = [
    Program(
        "ldmatrix feeds mma.sync",
        f"{COPY_IN} bar.sync 0; and.b32 %r1, %lane, 15; shr.u32 %r2, %lane, 4; mad.lo.u32 %r3, %r1, 32, %r29; mad.lo.u32 %r3, %r2, 16, %r3; "
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r3]; "
        "and.b32 %r1, %lane, 7; shr.u32 %r2, %lane, 3; and.b32 %r2, %r2, 1; mad.lo.u32 %r3, %r1, 32, %r29; mad.lo.u32 %r3, %r2, 16, %r3; "
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r8, %r9}, [%r3+512]; "
        "mov.b32 %f0, 0; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%f0, %f0, %f0, %f0}; st.global.b32 [%mine], %f1;",
        [int(MS_PRODUCT[t // 4, 2 * (t % 4) + 1].view(np.uint32)) for t in range(32)],
        threads=128,
        inputs=MS_IN,
    ),
    *(
        Program(
            f"mma.sync of doubles, m{m}n8k{k}",
            f".reg .f64 %a<8>, %b<4>, %c<4>, %d<4>; shr.u32 %r1, %lane, 2; and.b32 %r2, %lane, 3; cvt.rn.f64.u32 %a0, %r1; cvt.rn.f64.u32 %b0, %r2; add.f64 %c0, %a0, %b0; "
            f"mma.sync.aligned.m{m}n8k{k}.row.col.f64.f64.f64.f64 {{{vector('%d', m // 4)}}}, {{{vector('%a', m * k // 32, same=True)}}}, {{{vector('%b', k // 4, same=True)}}}, {{{vector('%c', m // 4, same=True)}}}; "
            "cvt.rzi.u32.f64 %r1, %d1; st.global.b32 [%mine], %r1;",
            # a thread's A is its row, its B the depth; C, of which it has two columns, the sum of both
            [k // 4 * 6 * (t // 4) + t // 4 + t % 4 for t in range(32)],
        )
        for m, k in ((8, 4), (16, 4), (16, 8), (16, 16))
    ),
    Program(
        "mma.sp.sync of every other element",
        "mov.b32 %r1, 0x3c003c00; mov.b32 %r2, 0xdddddddd; mov.b32 %f0, 0; shr.u32 %r3, %lane, 2; cvt.rn.f16.u32 %h0, %r3; mov.b32 %r3, {%h0, %h0}; "
        "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r1, %r1}, {%r3, %r3}, {%f0, %f0, %f0, %f0}, %r2, 0x0; "
        "cvt.rzi.u32.f32 %r1, %f1; st.global.b32 [%mine], %r1;".replace(
            "mov.b32 %r1", ".reg .b16 %h<2>; mov.b32 %r1", 1
        ),
        # ones in elements 1 and 3 of each four: half of the depth of column 2 (t % 4) + 1
        [8 * (2 * (t % 4) + 1) for t in range(32)],
    ),
    Program(
        "mma.sp.sync of bytes, by the second pair of threads",
        "and.b32 %r5, %lane, 2; setp.eq.u32 %p1, %r5, 0; selp.b32 %r2, 0, 0xeeeeeeee, %p1; mov.b32 %r1, 0x01010101; mov.b32 %r3, 0x00020003; mov.b32 %r4, 0; "
        "mma.sp.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%r5, %r6, %r7, %r8}, {%r1, %r1}, {%r3, %r3}, {%r4, %r4, %r4, %r4}, %r2, 1; st.global.b32 [%mine], %r8;",
        # elements 2 and 3 of each four; there B is 2 and 0
        [16 for _ in range(32)],
    ),
    Program(
        "stmatrix is the inverse of ldmatrix",
        f"mov.u32 %r29, s; and.b32 %r1, %lane, 7; mad.lo.u32 %r2, %r1, 16, %r29; mov.u32 %r3, %lane; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {{%r3}}; bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r1}}, [%r2]; {store()}",
        LANES,
    ),
    Program(
        "movmatrix transposes twice to the same",
        f"mov.u32 %r1, %lane; movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1; movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2; {store()}",
        LANES,
    ),
]
