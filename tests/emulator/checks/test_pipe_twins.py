# ruff: noqa: E501  (tables of programs: one a line)
"""Twins of threads that share a tensor pipe, and of CTAs that allocate tensor memory together."""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.checks.twins import Twins, broken
from tests.emulator.kernel import launch, rules

WAIT = "L: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra L;"

# -- the tensor pipe -------------------------------------------------------------------------

PIPE = """
  mov.u32 %r0, bar; mov.u32 %r2, slot; mov.u32 %r5, s; mov.u32 %r3, 0x8080490;
  setp.eq.u32 %p4, %thread, 0; setp.eq.u32 %p0, %warp, 0; setp.ne.u32 %p5, %thread, %thread;
  setp.eq.u32 %p6, %thread, 32; setp.eq.u32 %p7, %lane, 0;
  mov.b64 %rd1, 0x400800800040;
  @%p4 mbarrier.init.shared.b64 [%r0], 1; @%p4 mbarrier.init.shared.b64 [%r0+8], 1;
  @%p4 mbarrier.init.shared.b64 [%r0+16], 1;
  @%p4 fence.mbarrier_init.release.cluster;
  @!%p0 bra B; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 64;
B: mad.lo.u32 %r6, %thread, 128, %r5; mov.u32 %r7, 0; mov.b32 %r10, 0;
F: st.shared.v4.b32 [%r6], {%r10, %r10, %r10, %r10};
  add.u32 %r6, %r6, 16; add.u32 %r7, %r7, 1; setp.lt.u32 %p8, %r7, 8; @%p8 bra F;
  fence.proxy.async; tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  ld.shared.b32 %r1, [%r2];
"""
PIPE_END = """
  tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; @!%p0 bra Z;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;
Z:
"""
COPY = "tcgen05.cp.cta_group::1.128x128b [%r1+§], %rd1;"
MULTIPLY = "tcgen05.mma.cta_group::1.kind::f16 [%r1+§], %rd1, %rd1, %r3, %p5;"
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r0];"
COMMIT_2, COMMIT_3 = (COMMIT.replace("%r0", f"%r0+{at}") for at in (8, 16))
AFTER = "tcgen05.fence::after_thread_sync;"
LOAD = (
    f"{AFTER} tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r4}}, [%r1]; tcgen05.wait::ld.sync.aligned;"
)
WAIT_2, WAIT_3 = (
    WAIT.replace("%r0", f"%r0+{at}").replace("L", name) for at, name in ((8, "M"), (16, "O"))
)
HANDED = f"{AFTER} tcgen05.fence::before_thread_sync; bar.sync 1; {AFTER}"
ARRIVE_2 = "@%p4 mbarrier.arrive.relaxed.cluster.shared.b64 _, [%r0+8];"
FENCE = "fence.acq_rel.cta;"
RELAXED_2 = "M: mbarrier.try_wait.parity.relaxed.cluster.shared.b64 %p1, [%r0+8], 0; @!%p1 bra M;"


def at(operation: str, column: int = 0) -> str:
    """A copy or product into a column."""
    return operation.replace("§", str(column))


COMMITS = [
    Twins("race", f"{PIPE} @%p4 {at(work)} setp.eq.u32 %p9, %thread, §; @%p9 {COMMIT} {WAIT} {LOAD} {PIPE_END}", other, "0", threads=64, schedule=schedule)
    for work in (COPY, MULTIPLY)
    for other in ("1", "32")
    for schedule in ("eager", "lazy")
]  # fmt: skip
"""Another lane of the warp, or another warp, commits what it did not issue."""

FILLED = """
  @%p4 mbarrier.arrive.expect_tx.shared.b64 _, [%r0+8], 8192;
  @%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%in], 8192, [%r0+8];
"""
ISSUERS = [
    # what warp 0 learns by waiting is not known to what warp 1 issues
    Twins("race", f"{PIPE} {FILLED} @!%p0 bra W; {WAIT_2} @%p4 {at(MULTIPLY)} @%p4 {COMMIT} bra E; W: § @%p6 {at(MULTIPLY, 32)} @%p6 {COMMIT_3} E: {WAIT} {WAIT_3} {PIPE_END}", "", WAIT_2.replace("M", "Q"), threads=64, schedule="starving:0:1"),
    Twins("race", f"{PIPE} @%p4 {at(MULTIPLY)} @%p4 {COMMIT} @!%p0 bra W; {WAIT} W: § @%p6 {at(COPY)} @%p6 {COMMIT_2} {WAIT_2} {LOAD} {PIPE_END}", "", HANDED, threads=64, schedule="starving:0:1"),
    # issued after it, and a pipeline: no wait is needed
    Twins("race", f"{PIPE} @%p4 {at(COPY)} § @%p6 {at(MULTIPLY)} @%p6 {COMMIT} {WAIT} {LOAD} {PIPE_END}", "", HANDED, threads=64),
    Twins("race", f"{PIPE} @%p4 {at(MULTIPLY)} § @%p6 {at(MULTIPLY)} @%p6 {COMMIT} {WAIT} {LOAD} {PIPE_END}", "", HANDED, threads=64),
    Twins("tensor-fence", f"{PIPE} @%p4 {at(COPY)} tcgen05.fence::before_thread_sync; {ARRIVE_2} {RELAXED_2} § @%p6 {at(MULTIPLY)} @%p6 {COMMIT} {WAIT} {LOAD} {PIPE_END}", "", AFTER, threads=64, level=Level.STRICT),
    # issued after it, but no pipeline: a product before a copy, products into other shapes
    Twins("race", f"{PIPE} @%p4 {at(MULTIPLY)} @%p4 {COMMIT_2} § {HANDED} @%p6 {at(COPY)} @%p6 {COMMIT} {WAIT} {LOAD} {PIPE_END}", "", WAIT_2, threads=64),
    Twins("race", f"{PIPE} @%p4 {at(MULTIPLY)} @%p4 {COMMIT_2} § {HANDED} mov.u32 %r3, 0x8100490; @%p6 {at(MULTIPLY)} @%p6 {COMMIT} {WAIT} {LOAD} {PIPE_END}", "", WAIT_2, threads=64),
    # relaxed synchronisation orders tensor memory, and nothing else
    Twins("memory-order", f"{PIPE} @%p4 st.shared.b32 [%r5], 1; § {ARRIVE_2} {RELAXED_2} {FENCE} ld.shared.b32 %r8, [%r5]; {PIPE_END}", "", FENCE, threads=64),
    Twins("memory-order", f"{PIPE} @%p4 st.shared.b32 [%r5], 1; {FENCE} {ARRIVE_2} {RELAXED_2} § ld.shared.b32 %r8, [%r5]; {PIPE_END}", "", FENCE, threads=64),
]  # fmt: skip

# -- allocation ------------------------------------------------------------------------------

FIXED = """
  .shared .align 16 .b8 large[60000];
  setp.eq.u32 %p0, %warp, 0; mov.u32 %r2, slot; mov.u32 %r1, 0;
  @!%p0 bra B; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 64; B:
"""
STORE = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%thread}; tcgen05.wait::st.sync.aligned;"
ALLOCATIONS = [
    Twins("race", f"{FIXED} § @%p0 bra U; {STORE} U: {PIPE_END}", "", "bar.sync 1;", threads=64, schedule=schedule)
    for schedule in ("eager", "lazy", "starving:0:1")
]  # fmt: skip
"""A kernel that fills its multiprocessor may take its columns for the first; it must wait for them."""

# -- a pair ----------------------------------------------------------------------------------

PAIR = """
  barrier.cluster.arrive.relaxed; barrier.cluster.wait;
  mov.u32 %r0, slot; setp.eq.u32 %p1, %rank, 1; setp.eq.u32 %p0, %warp, 0;
  @!%p0 bra A; tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r0], 32;
A: bar.sync 0; ld.shared.b32 %r1, [%r0];
"""
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"
PAIR_FREE = "@!%p0 bra Z; tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 32; Z:"
LATE_USE = f"{STORE} @!%p1 bra N; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r4}}, [%r1]; tcgen05.wait::ld.sync.aligned; N:"
SCHEDULES = ("eager", "lazy", "starving:0:0", "starving:1:0")
PAIRS = [
    Twins("pair-dealloc", f"{PAIR} § {PAIR_FREE}", "", MEET, threads=64, grid=2, cluster=2, schedule=schedule, level=Level.ERROR)
    for schedule in SCHEDULES
] + [
    Twins("pair-dealloc", f"{PAIR} {MEET} {LATE_USE} § bar.sync 0; {PAIR_FREE}", "", meet, threads=64, grid=2, cluster=2, schedule=schedule)
    for meet in (MEET, MEET.replace("arrive", "arrive.relaxed"))
    for schedule in SCHEDULES
] + [
    # the CTA's own columns, as ever: the readers meet their warp before it frees
    Twins("race", f"{PAIR} {LATE_USE} § {MEET.replace('bar', '@%p0 bar')} {PAIR_FREE}", "", "bar.sync 0;", threads=64, grid=2, cluster=2),
]  # fmt: skip

TWINS = [*COMMITS, *ISSUERS, *ALLOCATIONS, *PAIRS]


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: f"{t.rule}-{t.schedule}")
def test_the_bad_twin_is_caught(twins: Twins):
    """The rule is named when it is broken."""
    assert twins.rule in broken(twins, twins.bad)


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: f"{t.rule}-{t.schedule}")
def test_the_good_twin_is_not(twins: Twins):
    """Nothing at all is found when it is kept."""
    assert broken(twins, twins.good) == set()


COPIED = """
  mad.lo.u32 %r6, %thread, 128, %r5; mov.u32 %r7, 0;
C: cp.async.cg.shared.global [%r6], [%in], 16; add.u32 %r6, %r6, 16; add.u32 %r7, %r7, 1;
  setp.lt.u32 %p8, %r7, 8; @%p8 bra C; cp.async.wait_all;
"""


@pytest.mark.parametrize(
    ("fence", "level", "found"),
    [
        ("", Level.WARN, set()),
        ("", Level.STRICT, {"proxy-fence"}),
        ("fence.proxy.async;", Level.STRICT, set()),
    ],
)
def test_an_operand_that_threads_copied(fence: str, level: Level, found: set[str]):
    """Of `cp.async` a proxy fence is asked for at the strict level alone: NVIDIA's kernels lack it."""
    body = f"{PIPE} {COPIED} {fence} tcgen05.fence::before_thread_sync; bar.sync 0; {AFTER} @%p4 {at(COPY)} @%p4 {COMMIT} {WAIT} {LOAD} {PIPE_END}"
    result, _ = launch(body, threads=64, level=level)
    assert (result.error, rules(result)) == (None, found)
