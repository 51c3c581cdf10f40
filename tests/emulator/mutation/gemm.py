"""A pipelined GEMM for Blackwell in PTX, small enough to be damaged on purpose.

D[f32, 256 x 64] = A[bf16, 256 x 256] B[bf16, 64 x 256]^T by one CTA of six warps, tile of 128 rows
after tile: warp 4 loads (TMA, two stages), warp 5 multiplies (tcgen05), warps 0 to 3 store (tensor
memory → registers → shared memory → TMA, 32 columns at a time through one buffer).
Barriers: full and empty for each stage, done and free for the accumulator.
"""

import ml_dtypes
import numpy as np

from kernelpack.emulator.faults import Level
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.run import Result, run
from kernelpack.spec.launch import Dim3, Plan
from kernelpack.spec.tensormap import Element, Swizzle, TensorMap

M, N, K, TILE, BLOCK = 256, 64, 256, 128, 64
IDESC = (1 << 4) | (1 << 7) | (1 << 10) | (N // 8 << 17) | (TILE // 16 << 24)
DESCRIPTOR = 1 << 16 | 1024 // 16 << 32 | 1 << 46 | 2 << 61
STAGE_BYTES = 2 * (TILE + N) * BLOCK
LOADED = ", ".join(f"%v{k}" for k in range(32))
STAGED = "\n  ".join(f"st.shared.b32 [%row+{4 * k}], %v{k};" for k in range(32))

GEMM = f"""
.version 9.1
.target sm_100a
.address_size 64
.visible .entry gemm(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .align 64 .b8 d[128])
{{
  .reg .b32 %v<32>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p<8>;
  .reg .b32 %thread, %warp, %lane, %full, %empty, %done, %free, %slot, %sa, %sb, %staging, %row;
  .reg .b32 %tile, %k, %n, %stage, %phase, %tm, %at, %half, %turn; .reg .b64 %ma, %mb, %md;
  .shared .align 1024 .b8 tiles[{2 * STAGE_BYTES}];
  .shared .align 128 .b8 staging[{4 * 32 * 32 * 4}];
  .shared .align 8 .b64 barriers[6];
  .shared .align 4 .b32 slot;
  mov.u32 %thread, %tid.x; shr.u32 %warp, %thread, 5; and.b32 %lane, %thread, 31;
  mov.u32 %full, barriers; add.u32 %empty, %full, 16; add.u32 %done, %full, 32; add.u32 %free, %full, 40;
  mov.u32 %slot, slot; mov.u32 %sa, tiles; add.u32 %sb, %sa, {2 * 2 * TILE * BLOCK};
  mov.b64 %ma, a; cvta.param.u64 %ma, %ma; mov.b64 %mb, b; cvta.param.u64 %mb, %mb;
  mov.b64 %md, d; cvta.param.u64 %md, %md;
  setp.ne.u32 %p0, %warp, 0; @%p0 bra INITIALISE;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot], 64;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
INITIALISE:
  setp.ne.u32 %p1, %thread, 32; @%p1 bra START;
  mbarrier.init.shared.b64 [%full], 1; mbarrier.init.shared.b64 [%full+8], 1;
  mbarrier.init.shared.b64 [%empty], 1; mbarrier.init.shared.b64 [%empty+8], 1;
  mbarrier.init.shared.b64 [%done], 1; mbarrier.init.shared.b64 [%free], 4;
  fence.mbarrier_init.release.cluster;
START:
  tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  ld.shared.b32 %tm, [%slot];
  mov.u32 %tile, 0; mov.u32 %n, 0;
  setp.eq.u32 %p2, %warp, 4; @%p2 bra LOAD;
  setp.eq.u32 %p2, %warp, 5; @%p2 bra MULTIPLY;

STORE:
  mad.lo.u32 %staging, %warp, 4096, 0; mov.u32 %r0, staging; add.u32 %staging, %staging, %r0;
  mad.lo.u32 %row, %lane, 128, %staging;
STORE_TILE:
  and.b32 %phase, %tile, 1;
WAIT_DONE: mbarrier.try_wait.parity.shared.b64 %p3, [%done], %phase; @!%p3 bra WAIT_DONE;
  tcgen05.fence::after_thread_sync;
  mov.u32 %half, 0;
STORE_HALF:
  shl.b32 %at, %warp, 21; add.u32 %at, %at, %tm; mad.lo.u32 %at, %half, 32, %at;
  tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{LOADED}}}, [%at];
  tcgen05.wait::ld.sync.aligned; // of the load
  cp.async.bulk.wait_group.read 0;
  bar.warp.sync -1;
  {STAGED}
  fence.proxy.async.shared::cta;
  bar.warp.sync 0xffffffff; // before the store
  mad.lo.u32 %r1, %warp, 32, 0; mad.lo.u32 %r1, %tile, {TILE}, %r1; mad.lo.u32 %r2, %half, 32, 0;
  setp.ne.u32 %p4, %lane, 0;
  @!%p4 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%md, {{%r2, %r1}}], [%staging];
  @!%p4 cp.async.bulk.commit_group;
  add.u32 %half, %half, 1; setp.lt.u32 %p5, %half, 2; @%p5 bra STORE_HALF;
  tcgen05.fence::before_thread_sync;
  @!%p4 mbarrier.arrive.shared.b64 _, [%free];
  add.u32 %tile, %tile, 1; setp.lt.u32 %p5, %tile, {M // TILE}; @%p5 bra STORE_TILE;
  cp.async.bulk.wait_group 0;
  bra END;

LOAD:
  elect.sync _|%p6, -1; @!%p6 bra END;
LOAD_TILE:
  mov.u32 %k, 0;
LOAD_BLOCK:
  and.b32 %stage, %n, 1; shr.u32 %phase, %n, 1; not.b32 %phase, %phase; and.b32 %phase, %phase, 1;
  mad.lo.u32 %r1, %stage, 8, %empty; mad.lo.u32 %r2, %stage, 8, %full;
WAIT_EMPTY: mbarrier.try_wait.parity.shared.b64 %p3, [%r1], %phase; @!%p3 bra WAIT_EMPTY;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], {STAGE_BYTES};
  mad.lo.u32 %r3, %stage, {2 * TILE * BLOCK}, %sa; mad.lo.u32 %r4, %stage, {2 * N * BLOCK}, %sb;
  mad.lo.u32 %r5, %k, {BLOCK}, 0; mad.lo.u32 %r6, %tile, {TILE}, 0;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%ma, {{%r5, %r6}}], [%r2];
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%mb, {{%r5, 0}}], [%r2];
  add.u32 %n, %n, 1; add.u32 %k, %k, 1; setp.lt.u32 %p5, %k, {K // BLOCK}; @%p5 bra LOAD_BLOCK;
  add.u32 %tile, %tile, 1; setp.lt.u32 %p5, %tile, {M // TILE}; @%p5 bra LOAD_TILE;
  bra END;

MULTIPLY:
  elect.sync _|%p6, -1; @!%p6 bra END;
MULTIPLY_TILE:
  mov.u32 %k, 0; and.b32 %turn, %tile, 1; xor.b32 %turn, %turn, 1;
WAIT_FREE: mbarrier.try_wait.parity.shared.b64 %p3, [%free], %turn; @!%p3 bra WAIT_FREE;
  tcgen05.fence::after_thread_sync;
MULTIPLY_BLOCK:
  and.b32 %stage, %n, 1; shr.u32 %phase, %n, 1; and.b32 %phase, %phase, 1;
  mad.lo.u32 %r1, %stage, 8, %empty; mad.lo.u32 %r2, %stage, 8, %full;
WAIT_FULL: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], %phase; @!%p3 bra WAIT_FULL;
  tcgen05.fence::after_thread_sync;
  mad.lo.u32 %r3, %stage, {2 * TILE * BLOCK}, %sa; mad.lo.u32 %r4, %stage, {2 * N * BLOCK}, %sb;
  shr.u32 %r3, %r3, 4; shr.u32 %r4, %r4, 4; cvt.u64.u32 %rd1, %r3; cvt.u64.u32 %rd2, %r4;
  or.b64 %rd1, %rd1, {DESCRIPTOR}; or.b64 %rd2, %rd2, {DESCRIPTOR};
  mov.u32 %r5, {IDESC}; setp.ne.u32 %p7, %k, 0;
  tcgen05.mma.cta_group::1.kind::f16 [%tm], %rd1, %rd2, %r5, %p7;
  setp.eq.u32 %p7, %k, %k;
  add.u64 %rd1, %rd1, 2; add.u64 %rd2, %rd2, 2; tcgen05.mma.cta_group::1.kind::f16 [%tm], %rd1, %rd2, %r5, %p7;
  add.u64 %rd1, %rd1, 2; add.u64 %rd2, %rd2, 2; tcgen05.mma.cta_group::1.kind::f16 [%tm], %rd1, %rd2, %r5, %p7;
  add.u64 %rd1, %rd1, 2; add.u64 %rd2, %rd2, 2; tcgen05.mma.cta_group::1.kind::f16 [%tm], %rd1, %rd2, %r5, %p7;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];
  add.u32 %n, %n, 1; add.u32 %k, %k, 1; setp.lt.u32 %p5, %k, {K // BLOCK}; @%p5 bra MULTIPLY_BLOCK;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%done];
  add.u32 %tile, %tile, 1; setp.lt.u32 %p5, %tile, {M // TILE}; @%p5 bra MULTIPLY_TILE;

END:
  bar.warp.sync -1; // all lanes
  tcgen05.fence::before_thread_sync;
  bar.sync 0; // the end
  tcgen05.fence::after_thread_sync;
  setp.ne.u32 %p0, %warp, 0; @%p0 bra OUT;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 64;
OUT:
  ret;
}}
"""
# ruff: noqa: E501  (PTX is as a compiler would write it)

SCHEDULES = ("eager", "lazy", "starving:0:0", "starving:0:4", "starving:0:5")


def maps(addresses: tuple[int, int, int]) -> tuple[TensorMap, TensorMap, TensorMap]:
    """The tensor maps of A, B and D."""

    def one(name: str, address: int, rows: int, box: tuple[int, int]) -> TensorMap:
        return TensorMap(
            name=name, element=Element.BF16, address=address, dims=(K, rows),
            strides_bytes=(2 * K,), box=box, element_strides=(1, 1), swizzle=Swizzle.B128,
        )  # fmt: skip

    d = TensorMap(
        name="d", element=Element.FP32, address=addresses[2], dims=(N, M), strides_bytes=(4 * N,),
        box=(32, 32), element_strides=(1, 1),
    )  # fmt: skip
    a, b, _ = addresses
    return one("a", a, M, (BLOCK, TILE)), one("b", b, N, (BLOCK, N)), d


def multiply(
    text: str, schedule: str, *, threads: int = 192, level: Level = Level.WARN, **options: bool
) -> tuple[Result, bool]:
    """Run a version of the GEMM; the result, and whether the numbers are right."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (rows, K)).astype(ml_dtypes.bfloat16) for rows in (M, N))
    memory = GlobalMemory(1 << 20)
    addresses = memory.put(a, "a"), memory.put(b, "b"), memory.allocate(4 * M * N, "d")
    plan = Plan(entry="gemm", grid=Dim3(1), block=Dim3(threads), arguments=maps(addresses))
    result = run(
        text, plan, memory, schedule=schedule, seed=3, level=level, step_limit=100_000, **options
    )
    found = memory.read(addresses[2], 4 * M * N).view(np.float32).reshape(M, N)
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    return result, bool((found == expected).all())
