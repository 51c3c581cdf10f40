# ruff: noqa: E501  (a table of programs: one a line)
"""Small programs that run the instructions which see the machine: body, launch, words expected.

`expected` is what the first words of `out` must be, or a function of the inputs. Inputs are words
that count up from 0 unless others are given.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from kernelpack.spec.tensormap import Element, Swizzle, TensorMap

LANES = list(range(32))
WORDS = np.arange(4096, dtype=np.uint32)


@dataclass(frozen=True)
class Program:
    """One program. `tensor_map` makes a map from the addresses of `in` and `out`."""

    name: str
    body: str
    expected: Any
    threads: int = 32
    grid: int = 1
    cluster: int = 1
    inputs: np.ndarray = field(default_factory=lambda: WORDS)
    tensor_map: Callable[[int, int], TensorMap] | None = None
    target: str = "sm_100a"

    def __str__(self) -> str:
        return self.name


def store(register: str = "%r1") -> str:
    """Each thread's register to its word of `out`."""
    return f"st.global.b32 [%mine], {register};"


INIT = """
  mov.u32 %r30, bar; setp.eq.u32 %p0, %thread, 0;
  @%p0 mbarrier.init.shared.b64 [%r30], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  bar.sync 0;
"""
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p15, [%r30], 0; @!%p15 bra W;"
FILL = "mov.u32 %r29, s; mad.lo.u32 %r28, %thread, 4, %r29; st.shared.b32 [%r28], %thread;"
GET = "mov.u32 %r29, s; mad.lo.u32 %r28, %thread, 4, %r29; ld.shared.b32 %r1, [%r28];"
PUT_DRAIN = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"

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
]

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


def box(address: int, *, swizzle: Swizzle = Swizzle.NONE) -> TensorMap:
    """8 rows of 32 words, all of them one box."""
    return TensorMap(
        name="box", element=Element.U32, address=address, dims=(32, 8), strides_bytes=(128,),
        box=(32, 8), element_strides=(1, 1), swizzle=swizzle,
    )  # fmt: skip


def rows(address: int) -> TensorMap:
    """Boxes of one row of 32 words."""
    return TensorMap(
        name="rows", element=Element.U32, address=address, dims=(32, 8), strides_bytes=(128,),
        box=(32, 1), element_strides=(1, 1),
    )  # fmt: skip


LOAD_BOX = f"{INIT} mov.u32 %r29, s; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 1024; cp.async.bulk.prefetch.tensor.2d.L2.global [%map, {{0, 0}}]; @%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r29], [%map, {{0, §}}], [%r30]; {WAIT}"
TENSOR = [
    Program(
        "a box with rows outside is filled with zeros",
        f"{LOAD_BOX.replace('§', '6')} {GET} ld.shared.b32 %r2, [%r28+256]; add.u32 %r1, %r1, %r2; {store()}",
        [192 + k for k in LANES],
        tensor_map=lambda source, _: box(source),
    ),
    Program(
        "a 128-byte swizzle moves 16-byte chunks by row",
        f"{LOAD_BOX.replace('§', '0')} mov.u32 %r29, s; ld.shared.b32 %r1, [%r29+144]; {store()}",
        [32] * 32,
        tensor_map=lambda source, _: box(source, swizzle=Swizzle.B128),
    ),
    Program(
        "gather4 takes rows by number",
        f"{INIT} mov.u32 %r29, s; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 512; @%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r29], [%map, {{0, 5, 1, -1, 2}}], [%r30]; {WAIT} {GET} {store()}",
        [160 + k for k in LANES],
        tensor_map=lambda source, _: rows(source),
    ),
    Program(
        "a tensor store clips",
        f"{FILL} fence.proxy.async; bar.sync 0; setp.eq.u32 %p1, %thread, 0; @%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {{0, 7}}], [%r29]; {PUT_DRAIN}",
        lambda out: out[224:256].tolist() == list(range(32)) and out[256] == 0,
        threads=256,
        tensor_map=lambda _, out: box(out),
    ),
    Program(
        "a tensor reduction adds",
        f"{FILL} fence.proxy.async; bar.sync 0; setp.eq.u32 %p1, %thread, 0; @%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%map, {{0, 0}}], [%r29]; @%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%map, {{0, 0}}], [%r29]; {PUT_DRAIN}",
        [2 * k for k in range(256)],
        threads=256,
        tensor_map=lambda _, out: box(out),
    ),
]

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


def cores(matrix: np.ndarray) -> np.ndarray:
    """(rows, 16) bf16 as core matrices of 8 rows x 16 bytes, the two of a row group apart."""
    blocks = matrix.reshape(-1, 8, 2, 8).transpose(2, 0, 1, 3)
    return np.ascontiguousarray(blocks).view(np.uint32).reshape(-1)


OPERANDS = np.zeros(4096, np.uint32)
OPERANDS[: M * K // 2] = cores(A16)
OPERANDS[1024 : 1024 + N * K // 2] = cores(B16)
PRODUCT = (A16.astype(np.float64) @ B16.astype(np.float64).T).astype(np.float32)
COPY_IN = """
  mov.u32 %r29, s; mov.u32 %r26, %thread;
CC: mad.wide.u32 %rd20, %r26, 4, %in; ld.global.b32 %r25, [%rd20]; mad.lo.u32 %r24, %r26, 4, %r29; st.shared.b32 [%r24], %r25;
  add.u32 %r26, %r26, 128; setp.lt.u32 %p14, %r26, 2048; @%p14 bra CC;
"""


def descriptor(register: str, offset: int, leading: int, stride: int, version: int = 1) -> str:
    """A descriptor without swizzle for the operand at `s + offset`."""
    rest = leading // 16 << 16 | stride // 16 << 32 | version << 46
    return f"add.u32 %r23, %r29, {offset}; shr.u32 %r23, %r23, 4; cvt.u64.u32 {register}, %r23; or.b64 {register}, {register}, {rest};"


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

LAUNCH_CONTROL = [
    Program(
        "a cluster takes over the next one",
        """mov.u32 %r30, bar; setp.eq.u32 %p0, %thread, 0; @%p0 mbarrier.init.shared.b64 [%r30], 1; @%p0 fence.mbarrier_init.release.cluster; bar.sync 0; mov.u32 %r29, s;
        mov.u32 %r10, 0; mov.u32 %r11, 0;
        T: atom.global.add.u32 %r12, [%mine], 1;
        @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 16;
        @%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r29], [%r30];
        X: mbarrier.try_wait.parity.shared.b64 %p1, [%r30], %r11; @!%p1 bra X;
        xor.b32 %r11, %r11, 1;
        ld.shared.b128 %q0, [%r29];
        clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;
        @%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r13, %r14, %r15, _}, %q0;
        @%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r16, %q0;
        @%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r17, %q0;
        @%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r18, %q0;
        bar.sync 0;
        @%p2 bra T;""",
        [3] * 32,
        grid=3,
    ),
]

PROGRAMS = [
    *MEMORY, *ATOMIC, *WARP, *BARRIER, *MBARRIER, *COPY, *TENSOR, *TCGEN05, *WGMMA, *MATRIX, *LAUNCH_CONTROL,
]  # fmt: skip
