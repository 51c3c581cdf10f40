# ruff: noqa: E501  (tables of programs and faults: one a line)
"""Ordinary kernels that are right, and the faults that people make in them, one at a time.

A fault names the rule that finds it. `%x` is the CTA's number; the others are those of `kernel`.
"""

from dataclasses import dataclass

from kernelpack.emulator.faults import Level

HEAD = ".reg .b32 %x; mov.u32 %x, %ctaid.x;"
PROGRAMS = {
    "copy of vectors": ("""
      mad.lo.u32 %r1, %x, 64, %thread; mul.wide.u32 %rd1, %r1, 16; add.u64 %rd2, %in, %rd1; add.u64 %rd3, %out, %rd1;
      mov.u32 %r7, s; mad.lo.u32 %r7, %thread, 16, %r7;
      ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd2]; st.shared.v4.b32 [%r7], {%r2, %r3, %r4, %r5};
      ld.shared.v2.b64 {%rd4, %rd5}, [%r7]; st.global.v2.b64 [%rd3], {%rd4, %rd5};
      mul.wide.u32 %rd1, %r1, 8; add.u64 %rd1, %rd1, %out; add.u64 %rd1, %rd1, 8192; add.u32 %r6, %r1, 1; st.global.v2.b32 [%rd1], {%r1, %r6};""", 64, 2, 1),
    "sum of a block": ("""
      mov.u32 %r1, s; mad.lo.u32 %r2, %thread, 4, %r1; st.shared.b32 [%r2], %thread; mov.u32 %r3, 64;
    L: bar.sync 0; setp.ge.u32 %p1, %thread, %r3; @%p1 bra S; mad.lo.u32 %r4, %r3, 4, %r2;
      ld.shared.b32 %r5, [%r2]; ld.shared.b32 %r6, [%r4]; add.u32 %r5, %r5, %r6; st.shared.b32 [%r2], %r5;
    S: shr.u32 %r3, %r3, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra L;
      bar.sync 0; ld.shared.b32 %r5, [%r1]; st.global.b32 [%mine], %r5; bar.sync 0; st.shared.b32 [%r2], 0;""", 128, 1, 1),
    "sum of a warp": ("""
      mov.u32 %r1, %lane; setp.lt.u32 %p1, %lane, 16; vote.sync.ballot.b32 %r4, %p1, -1; @!%p1 bra E;
      shfl.sync.bfly.b32 %r2, %r1, 8, 31, 0xffff; add.u32 %r1, %r1, %r2; shfl.sync.bfly.b32 %r2, %r1, 4, 31, %r4; add.u32 %r1, %r1, %r2;
      redux.sync.add.s32 %r3, %r1, 0xffff;
    E: bar.warp.sync -1; st.global.b32 [%mine], %r3;""", 32, 1, 1),
    "last block adds up": ("""
      mad.lo.u32 %r5, %x, 64, %thread; mul.wide.u32 %rd1, %r5, 4; add.u64 %rd1, %rd1, %out; add.u32 %r3, %thread, %x;
      st.global.b32 [%rd1+1024], %r3; membar.gl; bar.sync 0;
      mov.u32 %r6, s; setp.eq.u32 %p0, %thread, 0; @!%p0 bra M;
      atom.global.add.u32 %r2, [%out+64], 1; st.shared.b32 [%r6], %r2;
    M: bar.sync 0; ld.shared.b32 %r2, [%r6]; setp.ne.u32 %p1, %r2, 1; @%p1 bra Z;
      mad.wide.u32 %rd2, %thread, 4, %out; ld.global.b32 %r3, [%rd2+1024]; ld.global.b32 %r4, [%rd2+1280];
      add.u32 %r3, %r3, %r4; st.global.b32 [%mine+2048], %r3; Z:""", 64, 2, 1),
    "a flag between blocks": ("""
      setp.eq.u32 %p0, %thread, 0; @!%p0 bra Z; setp.ne.u32 %p1, %x, 0; @%p1 bra R;
      st.global.b32 [%out], 7; fence.acq_rel.gpu; st.relaxed.gpu.global.b32 [%out+64], 1; bra Z;
    R: ld.acquire.gpu.global.b32 %r2, [%out+64]; setp.eq.u32 %p3, %r2, 0; @%p3 bra R; ld.global.b32 %r3, [%out]; st.global.b32 [%out+128], %r3; Z:""", 32, 2, 1),
    "exchange between warps in place": ("""
      xor.b32 %r1, %thread, 32; mad.wide.u32 %rd1, %r1, 4, %out; st.global.b32 [%mine], %thread; bar.sync 1;
      ld.global.b32 %r2, [%rd1]; bar.sync 2; st.global.b32 [%mine], %r2; bar.sync 3;
      setp.eq.u32 %p0, %thread, 0; @%p0 st.global.b32 [%out+512], 0; bar.sync 4; red.global.add.u32 [%out+512], 1;""", 64, 1, 1),
    "a ring of one stage": ("""
      mov.u32 %r0, bar; mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; setp.eq.u32 %p0, %thread, 0; setp.eq.u32 %p1, %lane, 0;
      @%p0 mbarrier.init.shared.b64 [%r0], 1; @%p0 mbarrier.init.shared.b64 [%r0+8], 1; @%p0 fence.mbarrier_init.release.cluster; bar.sync 0;
      setp.ne.u32 %p2, %warp, 0; mov.u32 %r3, 0; @%p2 bra C;
    P: and.b32 %r4, %r3, 1; xor.b32 %r4, %r4, 1; A: mbarrier.try_wait.parity.shared.b64 %p3, [%r0+8], %r4; @!%p3 bra A;
      add.u32 %r5, %r3, %lane; st.shared.b32 [%r2], %r5; bar.warp.sync -1; @%p1 mbarrier.arrive.shared.b64 _, [%r0];
      add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 3; @%p4 bra P; bra E;
    C: and.b32 %r4, %r3, 1; B: mbarrier.try_wait.parity.shared.b64 %p3, [%r0], %r4; @!%p3 bra B;
      ld.shared.b32 %r5, [%r2]; bar.warp.sync -1; @%p1 mbarrier.arrive.shared.b64 _, [%r0+8]; st.global.b32 [%mine], %r5;
      add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 3; @%p4 bra C;
    E: bar.sync 0; @%p0 mbarrier.inval.shared.b64 [%r0]; @%p0 mbarrier.inval.shared.b64 [%r0+8]; @%p0 st.shared.b32 [%r0], 5;""", 64, 1, 1),
    "named barriers": ("""
      mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; setp.eq.u32 %p0, %warp, 0; mov.u32 %r3, 0; @!%p0 bra C;
    P: st.shared.b32 [%r2], %r3; bar.arrive 1, 64; bar.sync 2, 64; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 2; @%p1 bra P; bra E;
    C: bar.sync 1, 64; ld.shared.b32 %r4, [%r2]; st.global.b32 [%mine], %r4; bar.arrive 2, 64; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 2; @%p1 bra C; E:""", 64, 1, 1),
    "a copy by TMA": ("""
      mov.u32 %r0, bar; mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0; setp.eq.u32 %p1, %thread, 32;
      @%p0 mbarrier.init.shared.b64 [%r0], 1; @%p0 fence.mbarrier_init.release.cluster; bar.sync 0;
      @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 256;
      @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in], 256, [%r0];
    L: mbarrier.try_wait.parity.shared.b64 %p2, [%r0], 0; @!%p2 bra L; mad.lo.u32 %r2, %thread, 4, %r1; ld.shared.b32 %r3, [%r2];
      add.u32 %r3, %r3, %thread; st.shared.b32 [%r2], %r3; fence.proxy.async; bar.sync 0;
      @%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 256; @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;""", 64, 1, 1),
    "tensor memory": ("""
      .shared .align 16 .b8 large[60000]; setp.eq.u32 %p0, %warp, 0; mov.u32 %r2, slot; @!%p0 bra B;
      tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 64;
    B: tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; ld.shared.b32 %r1, [%r2];
      shl.b32 %r3, %warp, 21; add.u32 %r1, %r1, %r3; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%thread}; tcgen05.wait::st.sync.aligned;
      tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r1]; tcgen05.wait::ld.sync.aligned; st.global.b32 [%mine], %r4;
      tcgen05.fence::before_thread_sync; bar.sync 1; tcgen05.fence::after_thread_sync; @!%p0 bra Z; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64; Z:""", 64, 1, 1),
    "a word for the other CTA": ("""
      mov.u32 %r0, bar; mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0; setp.eq.u32 %p1, %rank, 1; and.pred %p2, %p0, %p1;
      mapa.shared::cluster.u32 %r2, %r0, 0; @%p0 mbarrier.init.shared.b64 [%r0], 1; @%p0 fence.mbarrier_init.release.cluster;
      barrier.cluster.arrive; barrier.cluster.wait; @%p2 st.shared.b32 [%r1], 7; @%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];
      @%p1 bra N; G: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p5, [%r0], 0; @!%p5 bra G;
      mapa.shared::cluster.u32 %r6, %r1, 1; ld.shared::cluster.b32 %r7, [%r6]; st.global.b32 [%mine], %r7; N: barrier.cluster.arrive; barrier.cluster.wait;""", 32, 2, 2),
    "registers that move": ("""
      shr.u32 %r1, %warp, 2; setp.eq.u32 %p0, %r1, 0; @%p0 bra P; setmaxnreg.inc.sync.aligned.u32 232; bra E;
    P: setmaxnreg.dec.sync.aligned.u32 40; E: bar.sync 0;""", 384, 1, 1),
}  # fmt: skip
"""Name → body, threads, grid, cluster."""


@dataclass(frozen=True)
class Fault:
    """A fault: in which program, what is replaced (once, the first) by what, and its rule."""

    program: str
    name: str
    old: str
    new: str
    rule: str
    level: Level = Level.WARN
    schedule: str = "eager"

    @property
    def body(self) -> str:
        """The program with the fault in it."""
        text = PROGRAMS[self.program][0]
        assert self.old in text, self.name
        return text.replace(self.old, self.new, 1)


def _of(program: str, *rows: tuple) -> list[Fault]:  # type: ignore[type-arg]
    return [Fault(program, *row) for row in rows]


STRICT = Level.STRICT
FAULTS = [
    *_of("copy of vectors",
         ("rows of 12 bytes are read as 16", "mul.wide.u32 %rd1, %r1, 16", "mul.wide.u32 %rd1, %r1, 12", "misaligned"),
         ("a vector begins at its second word", "[%rd2];", "[%rd2+4];", "misaligned"),
         ("a vector is written at 8 mod 16", "st.global.v2.b64 [%rd3]", "st.global.v2.b64 [%rd3+8]", "misaligned"),
         ("a row of shared memory is too short", "mad.lo.u32 %r7, %thread, 16, %r7", "mad.lo.u32 %r7, %thread, 20, %r7", "misaligned"),
         ("two words at an odd one", "st.global.v2.b32 [%rd1]", "st.global.v2.b32 [%rd1+4]", "misaligned"),
         ("blocks lie too far apart", "mad.lo.u32 %r1, %x, 64", "mad.lo.u32 %r1, %x, 6400", "bounds")),
    *_of("sum of a block",
         ("no barrier in the loop", "L: bar.sync 0;", "L:", "race"),
         ("no barrier before the result", "@%p2 bra L;\n      bar.sync 0;", "@%p2 bra L;", "race"),
         ("the next use does not wait for readers", "st.global.b32 [%mine], %r5; bar.sync 0;", "st.global.b32 [%mine], %r5;", "race"),
         ("a barrier behind a branch by lane", "L: bar.sync 0;", "and.b32 %r7, %lane, 1; setp.eq.u32 %p5, %r7, 0; L: @%p5 bra Q; bar.sync 0; bra R; Q: R:", "divergent"),
         ("the barrier counts half of the warps", "@%p2 bra L;\n      bar.sync 0;", "@%p2 bra L; bar.sync 0, 64;", "race"),
         ("the barrier's count is not a multiple of 32", "@%p2 bra L;\n      bar.sync 0;", "@%p2 bra L; bar.sync 0, 120;", "barrier-count")),
    *_of("sum of a warp",
         ("the mask names all lanes", "%r1, 8, 31, 0xffff", "%r1, 8, 31, 0xffffffff", "member-mask"),
         ("the sum is for all lanes", "%r1, 0xffff;", "%r1, 0xffffffff;", "member-mask"),
         ("the source does not take part", "bfly.b32 %r2, %r1, 8,", "bfly.b32 %r2, %r1, 16,", "member-mask"),
         ("a lane is not in its mask", "%r1, 0xffff;", "%r1, 0xfffe;", "member-mask")),
    *_of("last block adds up",
         ("no __threadfence", "membar.gl; ", "", "race"),
         ("__threadfence_block", "membar.gl;", "membar.cta;", "memory-order"),
         ("no barrier before the count", "membar.gl; bar.sync 0;", "membar.gl;", "race"),
         ("the fence comes before the store", "st.global.b32 [%rd1+1024], %r3; membar.gl;", "membar.gl; st.global.b32 [%rd1+1024], %r3;", "race"),
         ("the answer is read before the barrier", "M: bar.sync 0;", "M:", "race"),
         ("blocks share their words", "mad.lo.u32 %r5, %x, 64, %thread", "mad.lo.u32 %r5, %x, 32, %thread", "race")),
    *_of("a flag between blocks",
         ("no fence before the flag", "fence.acq_rel.gpu; st.relaxed", "st.relaxed", "race"),
         ("a volatile flag with no fence", "fence.acq_rel.gpu; st.relaxed.gpu", "st.volatile", "race"),
         ("a fence of the block", "fence.acq_rel.gpu", "fence.acq_rel.cta", "memory-order"),
         ("a relaxed read", "ld.acquire.gpu", "ld.relaxed.gpu", "memory-order"),
         ("a volatile read", "ld.acquire.gpu", "ld.volatile", "memory-order"),
         ("an acquire of the block", "ld.acquire.gpu", "ld.acquire.cta", "memory-order"),
         ("the data come after the fence", "st.global.b32 [%out], 7; fence.acq_rel.gpu;", "fence.acq_rel.gpu; st.global.b32 [%out], 7;", "race"),
         ("an atomic with no fence", "fence.acq_rel.gpu; st.relaxed.gpu.global.b32 [%out+64], 1", "red.global.add.u32 [%out+64], 1", "race")),
    *_of("exchange between warps in place",
         ("no barrier after the store", "bar.sync 1;", "", "race"),
         ("no barrier before what was read is overwritten", "bar.sync 2;", "", "race"),
         ("a counter is cleared beside its atomics", "bar.sync 4;", "", "race"),
         ("an atomic where a plain store is", "bar.sync 2; st.global.b32 [%mine], %r2;", "red.global.add.u32 [%mine], %r2;", "race")),
    *_of("a ring of one stage",
         ("the producer's lanes do not meet", "st.shared.b32 [%r2], %r5; bar.warp.sync -1;", "st.shared.b32 [%r2], %r5;", "warp-sync", STRICT),
         ("the consumer does not wait", "B: mbarrier.try_wait.parity.shared.b64 %p3, [%r0], %r4; @!%p3 bra B;", "", "Deadlock"),
         ("the producer does not wait", "A: mbarrier.try_wait.parity.shared.b64 %p3, [%r0+8], %r4; @!%p3 bra A;", "", "Deadlock"),
         ("a relaxed arrival", "mbarrier.arrive.shared.b64 _, [%r0];", "mbarrier.arrive.relaxed.cta.shared.b64 _, [%r0];", "memory-order"),
         ("the barrier's memory is used again", "@%p0 mbarrier.inval.shared.b64 [%r0];", "", "mbarrier-as-data"),
         ("the barriers are used before the CTA met", "fence.mbarrier_init.release.cluster; bar.sync 0;", "fence.mbarrier_init.release.cluster;", "race")),
    *_of("named barriers",
         ("the producer does not wait for the reader", "bar.arrive 1, 64; bar.sync 2, 64;", "bar.arrive 1, 64;", "barrier-arrive"),
         ("the reader signals before it has read", "ld.shared.b32 %r4, [%r2]; st.global.b32 [%mine], %r4; bar.arrive 2, 64;", "bar.arrive 2, 64; ld.shared.b32 %r4, [%r2]; st.global.b32 [%mine], %r4;", "race"),
         ("one side counts another number", "C: bar.sync 1, 64;", "C: bar.sync 1, 96;", "barrier-count")),
    *_of("a copy by TMA",
         ("the barrier is used before the CTA met", "fence.mbarrier_init.release.cluster; bar.sync 0;", "fence.mbarrier_init.release.cluster;", "race"),
         ("no proxy fence before the store", "fence.proxy.async;", "", "proxy-fence"),
         ("no barrier before the store", "fence.proxy.async; bar.sync 0;", "fence.proxy.async;", "race"),
         ("nobody waits for the store", "@%p1 cp.async.bulk.wait_group 0;", "", "store-in-flight-at-exit", Level.WARN, "lazy"),
         ("nobody waits for the load", "L: mbarrier.try_wait.parity.shared.b64 %p2, [%r0], 0; @!%p2 bra L;", "", "race")),
    *_of("tensor memory",
         ("no barrier after the allocation", "bar.sync 0;", "", "race"),
         ("no barrier before the columns are freed", "bar.sync 1;", "", "race"),
         ("the columns are never freed", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;", "", "tensor-memory-leak"),
         ("nobody waits for the store", "tcgen05.wait::st.sync.aligned;", "", "race"),
         ("too few columns", "[%r2], 64;", "[%r2], 32;", "Fault")),
    *_of("a word for the other CTA",
         ("an arrival of the CTA's scope", "mbarrier.arrive.release.cluster.", "mbarrier.arrive.release.cta.", "memory-order"),
         ("a wait of the CTA's scope", "parity.acquire.cluster", "parity.acquire.cta", "memory-order"),
         ("the CTAs do not meet first", "barrier.cluster.arrive; barrier.cluster.wait; @%p2", "@%p2", "cta-not-started"),
         ("a CTA leaves while it is read", "N: barrier.cluster.arrive; barrier.cluster.wait;", "N:", "cta-ended")),
    *_of("registers that move",
         ("more than the CTA has", "inc.sync.aligned.u32 232", "inc.sync.aligned.u32 240", "Deadlock"),
         ("fewer are given than taken", "dec.sync.aligned.u32 40", "dec.sync.aligned.u32 48", "Deadlock")),
]  # fmt: skip
