# ruff: noqa: E501  (a table of programs: one a line)
"""tcgen05: tensor memory, and the pipe that multiplies and copies into it."""

import ml_dtypes
import numpy as np

from tests.emulator.semantics.programs.operands import COPY_IN, cores, descriptor
from tests.emulator.semantics.programs.program import INIT, WAIT, Program

ALLOC = """
  setp.eq.u32 %p0, %warp, 0; mov.u32 %r31, slot; @!%p0 bra AA;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r31], 64;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
AA: tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; ld.shared.b32 %r27, [%r31];
"""
FREE = "tcgen05.fence::before_thread_sync; bar.sync 0; @!%p0 bra ZZ; tcgen05.fence::after_thread_sync; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r27, 64; ZZ:"


def through(shape: str, count: int) -> str:
    """Registers stored to tensor memory in a shape and loaded back."""
    values = ", ".join(f"%f{k}" for k in range(count))
    back = ", ".join(f"%f{k}" for k in range(64, 64 + count))
    repeats = {
        "32x32b": count,
        "16x64b": count,
        "16x128b": count // 2,
        "16x256b": count // 4,
        "16x32bx2": count,
    }[shape]
    split = ", 16" if shape == "16x32bx2" else ""
    return (
        f"{ALLOC} {' '.join(f'mad.lo.u32 %f{k}, %thread, 100, {k};' for k in range(count))} "
        f"tcgen05.st.sync.aligned.{shape}.x{repeats}.b32 [%r27]{split}, {{{values}}}; tcgen05.wait::st.sync.aligned; "
        f"tcgen05.ld.sync.aligned.{shape}.x{repeats}.b32 {{{back}}}, [%r27]{split}; tcgen05.wait::ld.sync.aligned; "
        f"st.global.b32 [%mine], %f{63 + count}; {FREE}"
    )


M, N, K = 128, 32, 16
IDESC = (1 << 4) | (1 << 7) | (1 << 10) | (N // 8 << 17) | (M // 16 << 24)
A16 = (np.arange(M * K) % 7 - 3).astype(ml_dtypes.bfloat16).reshape(M, K)
B16 = (np.arange(N * K) % 5 - 2).astype(ml_dtypes.bfloat16).reshape(N, K)


OPERANDS = np.zeros(4096, np.uint32)
OPERANDS[: M * K // 2] = cores(A16)
OPERANDS[1024 : 1024 + N * K // 2] = cores(B16)
PRODUCT = (A16.astype(np.float64) @ B16.astype(np.float64).T).astype(np.float32)
LEAD_A, LEAD_B = M // 8 * 128, N // 8 * 128
MMA = (
    f"{ALLOC} {INIT.replace('bar.sync 0;', '')} {COPY_IN} fence.proxy.async; bar.sync 0; "
    f"{descriptor('%rd1', 0, LEAD_A, 128)} {descriptor('%rd2', 4096, LEAD_B, 128)} mov.u32 %r22, {IDESC}; "
    "setp.eq.u32 %p2, %thread, 0; setp.ne.u32 %p3, %thread, %thread; "
    "@%p2 tcgen05.mma.cta_group::1.kind::f16 [%r27], %rd1, %rd2, %r22, %p3; "
    "@%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r30]; "
    f"{WAIT} tcgen05.fence::after_thread_sync; "
)
FIRST_COLUMN = f"tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%f0}}, [%r27+3]; tcgen05.wait::ld.sync.aligned; st.global.b32 [%mine], %f0; setp.eq.u32 %p0, %warp, 0; {FREE}"
COPY_ROWS = (
    f"{ALLOC} {INIT.replace('bar.sync 0;', '')} {COPY_IN} fence.proxy.async; bar.sync 0; {descriptor('%rd1', 0, 16, 128)} "
    "setp.eq.u32 %p2, %thread, 0; @%p2 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r27], %rd1; "
    f"@%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r30]; {WAIT} tcgen05.fence::after_thread_sync; "
    f"{FIRST_COLUMN.replace('+3', '+1')}"
)
TCGEN05 = [
    *[
        Program(
            f"{shape} stores and loads back",
            through(shape, 8),
            [100 * t + 7 for t in range(128)],
            threads=128,
        )
        for shape in ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2")
    ],
    Program(
        "a lane from 128 on is that of a pair's second CTA",
        through("32x32b", 8).replace(
            "}, [%r27]; tcgen05.wait::ld", "}, [%r27+8388608]; tcgen05.wait::ld"
        ),
        [100 * t + 7 for t in range(128)],
        threads=128,
    ),
    Program(
        "an MMA of bf16",
        MMA + FIRST_COLUMN,
        PRODUCT[:, 3].view(np.uint32).tolist(),
        threads=128,
        inputs=OPERANDS,
    ),
    Program(
        "cp copies 32 rows to every quadrant",
        COPY_ROWS,
        [4 * (t % 32) + 1 for t in range(128)],
        threads=128,
    ),
]
