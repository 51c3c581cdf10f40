"""A finding says where to look: at the instruction concerned, and at the one that began it."""

import pytest

from kernelpack.emulator.faults import Level, brief
from tests.emulator.kernel import launch

WGMMA = """
  mov.b64 %rd1, 0x4000004000000040; mov.u32 %r1, s; setp.ne.u32 %p0, %r1, %r1;
  mov.b32 %f0, 0; mov.b32 %f1, 0; mov.b32 %f2, 0; mov.b32 %f3, 0;
  wgmma.fence.sync.aligned;
  .loc 1 70 5
  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, {%r1, %r1, %r1, %r1},
    %rd1, %p0, 1, 1, 0;
  .loc 1 71 5
"""
USE = """
  .loc 1 80 5
  add.f32 %f4, %f0, %f0;
"""
COMMIT = "wgmma.commit_group.sync.aligned;"


def found(body, rule):
    """The finding of a rule, lazily run."""
    result, _ = launch(body, threads=128, target="sm_90a", schedule="lazy", level=Level.STRICT)
    (finding,) = (one for one in result.findings if one.rule.name == rule)
    return finding


@pytest.mark.parametrize(
    ("between", "missing"), [("", "wgmma.commit_group"), (COMMIT, "wgmma.wait_group")]
)
def test_an_accumulator_in_flight(between, missing):
    """Where it is used, which wgmma it is of, and what that one lacks."""
    finding = found(WGMMA + between + USE, "wgmma-registers-in-flight")
    assert (finding.place, finding.instruction) == ("file 1:80", "add.f32 %f4, %f0, %f0")
    assert finding.message == (
        f"the accumulator of the wgmma at file 1:70 is used before {missing}"
    )


def test_left_in_flight():
    """What was in flight at the end is named with its line, without its operands."""
    message = found(WGMMA, "store-in-flight-at-exit").message
    assert message == (
        "cta (0, 0, 0) ends: wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 at file 1:70 "
        "was still in flight"
    )


FENCED = """
  setp.eq.u32 %p0, %warp, 0;
  mov.u32 %r0, slot;
  @%p0 bra A; bra B;
A: tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;
B: bar.sync 0; ld.shared.b32 %r1, [%r0];
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%thread};
  tcgen05.wait::st.sync.aligned;
"""
FREE = "@!%p0 bra Z; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32; Z:"
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"


@pytest.mark.parametrize(
    ("before", "after", "missing"),
    [
        (BEFORE, "", "warp 0 of cta (0, 0, 0) has no tcgen05.fence::after_thread_sync after barr"),
        (
            "",
            AFTER,
            "tcgen05.fence::before_thread_sync, or commit, is missing after the latter: wa",
        ),
    ],
)
def test_the_fence_that_is_missing(before, after, missing):
    """The side without a fence is named, and what was waited for."""
    body = FENCED + before + "bar.sync 1;" + after + FREE
    result, _ = launch(body, threads=64, level=Level.STRICT)
    (finding,) = (one for one in result.findings if one.rule.name == "tensor-fence")
    assert missing in finding.message


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("add.f32 %f4, %f0, %f0;", "add.f32 %f4, %f0, %f0;"),
        ("tcgen05.ld {%r1, %r2}, [%r3];", "tcgen05.ld {%r1, %r2}, [%r3];"),
        (f"wgmma {{{', '.join(f'%f{i}' for i in range(40))}}}, a;", "wgmma {%f0, …, %f39}, a;"),
    ],
)
def test_brief(instruction, expected):
    """Of a long list of registers the ends are enough."""
    assert expected == brief(instruction)


UNALLOCATED = """
  mov.u32 %r1, 0; mov.u32 %r2, s; mad.lo.u32 %r3, %thread, 4, %r2; st.shared.b32 [%r3], %thread;
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%thread}; tcgen05.wait::st.sync.aligned;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r1]; tcgen05.wait::ld.sync.aligned;
  tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r4, %r5}, [%r1+8]; tcgen05.wait::ld.sync.aligned;
  ld.shared.b32 %r6, [%r2]; st.global.b32 [%mine], %r6;
"""


def test_a_kernel_that_never_allocates():
    """It is reported once, with a count, so that a race of the kernel's own is seen beside it."""
    result, _ = launch(UNALLOCATED, threads=64)
    told = [finding.message for finding in result.findings if finding.count > 4]
    assert sorted(f.rule.name for f in result.findings) == ["race", "tensor-memory-unallocated"]
    assert told == ["tcgen05.st of column 0, and the CTA has allocated no tensor memory"]


FREED = """
  .loc 1 90 5
  @%p0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
  .loc 1 91 5
"""


def test_a_load_after_another_warp_deallocated():
    """The columns are gone: who gave them back, and where; not who wrote to them."""
    body = FENCED + "bar.sync 0;" + FREED + "@!%p0 bra L; bra Z; L: "
    body += "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r1]; tcgen05.wait::ld.sync.aligned; Z:"
    result, _ = launch(body, threads=64, schedule="starving:0:1")
    told = {finding.rule.name: finding.message for finding in result.findings}
    assert {"race", "tensor-memory-unallocated"} == set(told)
    assert told["tensor-memory-unallocated"] == (
        "tcgen05.ld of column 480, which warp 0 deallocated at file 1:90"
    )
    assert "which warp 0 of cta (0, 0, 0) deallocated at file 1:90, with nothing" in told["race"]


def test_findings_of_a_rule_stand_together():
    """Worst first, and of one level in the order in which the rules were broken first."""
    races = "st.shared.b32 [%r1], %thread;"
    far = "st.global.b32 [%mine+1000000], %thread;"
    result, _ = launch(f"mov.u32 %r1, s; {races} {far} {races} {far}", threads=64)
    names = [finding.rule.name for finding in result.findings]
    assert sorted(names, key=names.index) == names
    assert {"race", "bounds"} == set(names)
