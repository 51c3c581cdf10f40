"""Faults to be put into the GEMM, one at a time: a name, a piece of its text, what replaces it.

A number picks which occurrence is replaced; 0 is the first, None is every one.
"""
# ruff: noqa: E501  (a table)

from dataclasses import dataclass

from kernelpack.emulator.faults import Level
from tests.emulator.mutation.gemm import DESCRIPTOR, GEMM, IDESC, STAGE_BYTES


@dataclass(frozen=True)
class Seeded:
    """One fault, and the level at which it is caught; `reason` says why not by default."""

    name: str
    old: str
    new: str
    which: int | None = 0
    level: Level = Level.WARN
    reason: str = ""

    @property
    def text(self) -> str:
        """The GEMM with the fault in it."""
        assert self.old in GEMM, self.name
        if self.which is None:
            return GEMM.replace(self.old, self.new)
        parts = GEMM.split(self.old)
        head = self.old.join(parts[: self.which + 1])
        return head + self.new + self.old.join(parts[self.which + 1 :])


LAST_STEP = "add.u64 %rd1, %rd1, 2; add.u64 %rd2, %rd2, 2; tcgen05.mma.cta_group::1.kind::f16 [%tm], %rd1, %rd2, %r5, %p7;\n  tcgen05.commit"
COMMIT_EMPTY = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];"
COMMIT_DONE = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%done];"

SEEDED = [
    # barrier counts and initialisation
    Seeded("full expects two arrivals", "mbarrier.init.shared.b64 [%full], 1;", "mbarrier.init.shared.b64 [%full], 2;"),
    Seeded("empty expects two arrivals", "[%empty+8], 1;", "[%empty+8], 2;"),
    Seeded("done expects two arrivals", "[%done], 1;", "[%done], 2;"),
    Seeded("free expects five arrivals", "[%free], 4;", "[%free], 5;"),
    Seeded("free expects three arrivals", "[%free], 4;", "[%free], 3;"),
    Seeded("a barrier is never initialised", "mbarrier.init.shared.b64 [%full+8], 1;", ""),
    Seeded("the barriers are used before the CTA met", "tcgen05.fence::before_thread_sync; bar.sync 0;", ""),
    # phases
    Seeded("the loader waits for the wrong phase", "not.b32 %phase, %phase;", ""),
    Seeded("the multiplier waits for the wrong phase", "shr.u32 %phase, %n, 1; and.b32 %phase, %phase, 1;", "shr.u32 %phase, %n, 1; add.u32 %phase, %phase, 1; and.b32 %phase, %phase, 1;"),
    Seeded("the phase flips each block", "shr.u32 %phase, %n, 1; and.b32 %phase, %phase, 1;", "and.b32 %phase, %n, 1;"),
    Seeded("the storers wait for the wrong phase", "and.b32 %phase, %tile, 1;", "add.u32 %phase, %tile, 1; and.b32 %phase, %phase, 1;"),
    Seeded("the accumulator's turn is wrong", "xor.b32 %turn, %turn, 1;", ""),
    # waits
    Seeded("the loader does not wait", "WAIT_EMPTY: mbarrier.try_wait.parity.shared.b64 %p3, [%r1], %phase; @!%p3 bra WAIT_EMPTY;", ""),
    Seeded("the multiplier does not wait for data", "WAIT_FULL: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], %phase; @!%p3 bra WAIT_FULL;", ""),
    Seeded("the multiplier does not wait for the accumulator", "WAIT_FREE: mbarrier.try_wait.parity.shared.b64 %p3, [%free], %turn; @!%p3 bra WAIT_FREE;", ""),
    Seeded("the storers do not wait", "WAIT_DONE: mbarrier.try_wait.parity.shared.b64 %p3, [%done], %phase; @!%p3 bra WAIT_DONE;", ""),
    Seeded("a wait does not loop", "@!%p3 bra WAIT_FULL;", ""),
    Seeded("no wait_group.read", "cp.async.bulk.wait_group.read 0;", ""),
    Seeded("wait_group.read keeps one", "cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group.read 1;"),
    Seeded("no wait for the last stores", "cp.async.bulk.wait_group 0;", ""),
    Seeded("no commit_group", "@!%p4 cp.async.bulk.commit_group;", ""),
    Seeded("no warp barrier before the store", "bar.warp.sync 0xffffffff; // before the store", "", level=Level.STRICT,
           reason="lanes of a warp are not compared with each other; they run in step here"),
    Seeded("no tcgen05.wait::ld", "tcgen05.wait::ld.sync.aligned; // of the load", "", level=Level.STRICT,
           reason="ptxas tracks the registers, production kernels rely on it, and their use here comes before the release"),
    Seeded("no CTA barrier before the dealloc", "bar.sync 0; // the end", ""),
    # transactions
    Seeded("expect_tx is 16 too many", f"{STAGE_BYTES};", f"{STAGE_BYTES + 16};"),
    Seeded("expect_tx is 16 too few", f"[%r2], {STAGE_BYTES};", f"[%r2], {STAGE_BYTES - 16};"),
    Seeded("a plain arrive instead of expect_tx", f"mbarrier.arrive.expect_tx.shared.b64 _, [%r2], {STAGE_BYTES};", "mbarrier.arrive.shared.b64 _, [%r2];"),
    Seeded("a copy completes on the other stage's barrier", "[%r4], [%mb, {%r5, 0}], [%r2];", "[%r4], [%mb, {%r5, 0}], [%full];"),
    Seeded("a copy is missing", "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%mb, {%r5, 0}], [%r2];", ""),
    Seeded("both copies go to the same stage", "mad.lo.u32 %r4, %stage, 8192, %sb;", "mov.u32 %r4, %sb;"),
    # commits
    Seeded("no commit to empty", COMMIT_EMPTY, ""),
    Seeded("no commit to done", COMMIT_DONE, ""),
    Seeded("a plain arrive in place of the commit to empty", COMMIT_EMPTY, "mbarrier.arrive.shared.b64 _, [%r1];"),
    Seeded("a plain arrive in place of the commit to done", COMMIT_DONE, "mbarrier.arrive.shared.b64 _, [%done];"),
    Seeded("the commit goes to the other stage", COMMIT_EMPTY, COMMIT_EMPTY.replace("%r1", "%empty")),
    Seeded("the storers release before they load", "tcgen05.fence::after_thread_sync;\n  mov.u32 %half, 0;", "tcgen05.fence::after_thread_sync;\n  mov.u32 %half, 0; setp.ne.u32 %p4, %lane, 0; @!%p4 mbarrier.arrive.shared.b64 _, [%free];"),
    Seeded("the storers do not release", "@!%p4 mbarrier.arrive.shared.b64 _, [%free];", ""),
    # fences
    Seeded("no proxy fence before the store", "fence.proxy.async.shared::cta;", ""),
    Seeded("a proxy fence for global memory only", "fence.proxy.async.shared::cta;", "fence.proxy.async.global;"),
    Seeded("an ordinary fence instead", "fence.proxy.async.shared::cta;", "fence.acq_rel.cta;"),
    # descriptors
    Seeded("the stride of A is 512", f"or.b64 %rd1, %rd1, {DESCRIPTOR};", f"or.b64 %rd1, %rd1, {DESCRIPTOR ^ (1024 // 16 ^ 512 // 16) << 32};"),
    Seeded("the stride of B is 2048", f"or.b64 %rd2, %rd2, {DESCRIPTOR};", f"or.b64 %rd2, %rd2, {DESCRIPTOR ^ (1024 // 16 ^ 2048 // 16) << 32};"),
    Seeded("the descriptor's version is 0", f"or.b64 %rd1, %rd1, {DESCRIPTOR};", f"or.b64 %rd1, %rd1, {DESCRIPTOR ^ 1 << 46};"),
    Seeded("the swizzle of A is 64 bytes", f"or.b64 %rd1, %rd1, {DESCRIPTOR};", f"or.b64 %rd1, %rd1, {DESCRIPTOR ^ 6 << 61};"),
    Seeded("no swizzle for B", f"or.b64 %rd2, %rd2, {DESCRIPTOR};", f"or.b64 %rd2, %rd2, {DESCRIPTOR ^ 2 << 61};"),
    Seeded("the step along K is twice too long", "add.u64 %rd1, %rd1, 2;", "add.u64 %rd1, %rd1, 4;", None),
    Seeded("the step along K is missing", "add.u64 %rd2, %rd2, 2;", "", 1),
    Seeded("N of the instruction is halved", f"mov.u32 %r5, {IDESC};", f"mov.u32 %r5, {IDESC - (64 // 8 << 17) + (32 // 8 << 17)};"),
    Seeded("M of the instruction is 64", f"mov.u32 %r5, {IDESC};", f"mov.u32 %r5, {IDESC - (8 << 24) + (4 << 24)};"),
    Seeded("A is taken for f16", f"mov.u32 %r5, {IDESC};", f"mov.u32 %r5, {IDESC ^ 1 << 7};"),
    Seeded("B is transposed", f"mov.u32 %r5, {IDESC};", f"mov.u32 %r5, {IDESC | 1 << 16};"),
    Seeded("the first MMA accumulates", "setp.ne.u32 %p7, %k, 0;", "setp.eq.u32 %p7, %k, %k;"),
    Seeded("every block starts anew", "setp.eq.u32 %p7, %k, %k;", ""),
    # tensor memory
    Seeded("too few columns are allocated", "[%slot], 64;", "[%slot], 32;"),
    Seeded("columns that are not a power of two", "[%slot], 64;", "[%slot], 48;"),
    Seeded("the allocation is never freed", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 64;", ""),
    Seeded("half of the allocation is freed", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 64;", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 32;"),
    Seeded("the address is not read back", "ld.shared.b32 %tm, [%slot];", "mov.u32 %tm, 128;"),
    Seeded("a warp reads another quadrant", "shl.b32 %at, %warp, 21;", "xor.b32 %at, %warp, 1; shl.b32 %at, %at, 21;"),
    Seeded("a warp reads 16 lanes further", "add.u32 %at, %at, %tm;", "add.u32 %at, %at, %tm; add.u32 %at, %at, 1048576;"),
    Seeded("the second half is read 16 columns early", "mad.lo.u32 %at, %half, 32, %at;", "mad.lo.u32 %at, %half, 16, %at;"),
    # tiles and addresses
    Seeded("one block along K too few", "setp.lt.u32 %p5, %k, 4; @%p5 bra MULTIPLY_BLOCK;", "setp.lt.u32 %p5, %k, 3; @%p5 bra MULTIPLY_BLOCK;"),
    Seeded("one block along K too many", "setp.lt.u32 %p5, %k, 4; @%p5 bra LOAD_BLOCK;", "setp.lt.u32 %p5, %k, 5; @%p5 bra LOAD_BLOCK;"),
    Seeded("the last tile is not stored", "setp.lt.u32 %p5, %tile, 2; @%p5 bra STORE_TILE;", "setp.lt.u32 %p5, %tile, 1; @%p5 bra STORE_TILE;"),
    Seeded("rows of D are one off", "mad.lo.u32 %r1, %tile, 128, %r1;", "mad.lo.u32 %r1, %tile, 128, %r1; add.u32 %r1, %r1, 1;"),
    Seeded("the stages overlap", "mad.lo.u32 %r4, %stage, 8192, %sb;", "mad.lo.u32 %r4, %stage, 4096, %sb;", None),
    Seeded("the staging rows overlap", "mad.lo.u32 %row, %lane, 128, %staging;", "mad.lo.u32 %row, %lane, 124, %staging;"),
    Seeded("the staging buffers of warps overlap", "mad.lo.u32 %staging, %warp, 4096, 0;", "mad.lo.u32 %staging, %warp, 2048, 0;"),
    Seeded("all lanes multiply", "elect.sync _|%p6, -1; @!%p6 bra END;\nMULTIPLY_TILE", "\nMULTIPLY_TILE"),
    Seeded("a shared operand is read past the tile", "shr.u32 %r4, %r4, 4;", "add.u32 %r4, %r4, 65536; shr.u32 %r4, %r4, 4;"),
]  # fmt: skip
