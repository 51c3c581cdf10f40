# ruff: noqa: E501  (bodies of kernels: one a line)
"""A launch that overlaps the next one of the same kernel (PTX ISA 9.7.13.13)."""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.kernel import launch, rules

WAIT, GO = "griddepcontrol.wait;", "griddepcontrol.launch_dependents;"
AT = "mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 32, %thread; mad.wide.u32 %rd1, %r1, 4, %out;"
ADD = "ld.global.b32 %r2, [%rd1]; add.u32 %r2, %r2, 1; st.global.b32 [%rd1], %r2;"
PEER = "xor.b32 %r3, %r1, 32; mad.wide.u32 %rd2, %r3, 4, %out; ld.global.b32 %r4, [%rd2+1024]; add.u32 %r4, %r4, 1; st.global.b32 [%rd1+512], %r4; st.global.b32 [%rd1+1024], %r1;"


def broken(body: str, **options: object) -> set[str]:
    """The rules that two overlapping launches of two blocks break."""
    return rules(launch(body, grid=2, schedule="overlapping", level=Level.STRICT, **options)[0])


@pytest.mark.parametrize("go", ["", GO])
def test_what_is_read_behind_the_wait_is_known(go: str):
    """Two launches add 2, whether the first lets the other begin early or not."""
    result, out = launch(f"{AT} {go} {WAIT} {ADD}", grid=2, schedule="overlapping")
    assert (result.findings, out[:64].tolist()) == ((), [2] * 64)


@pytest.mark.parametrize(
    "body",
    [
        f"{AT} {GO} {ADD} {WAIT}",
        f"{AT} {GO} {ADD}",
        f"{AT} {ADD}",
        f"{AT} {GO} ld.global.b32 %r2, [%rd1]; {WAIT} add.u32 %r2, %r2, 1; st.global.b32 [%rd1], %r2;",
        f"{AT} ld.global.b32 %r2, [%rd1]; {GO} st.global.b32 [%rd1], %thread; {WAIT}",
        "mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0; @%p0 st.shared.b32 [%r1], 7; fence.proxy.async; griddepcontrol.launch_dependents; ld.global.b32 %r5, [%out]; @%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 16; @%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0; griddepcontrol.wait;",
    ],
)  # fmt: skip
def test_what_is_touched_before_the_wait_races(body: str):
    """With what the launch before wrote, or read; also where no launch says that others may begin."""
    assert "race" in broken(body)


def test_the_second_launch_may_wait_for_the_first_alone():
    """Nothing orders the blocks of one launch; what another block writes after it races still."""
    assert "race" in broken(f"{AT} {WAIT} {GO} {PEER}")


def test_a_launch_begins_when_all_blocks_of_the_last_one_let_it():
    """A block that waits for the next launch before it says so waits for ever."""
    flag = "setp.eq.u32 %p0, %thread, 0; @!%p0 bra Z;"
    body = f"{flag} atom.global.add.u32 %r1, [%out], 1; L: ld.volatile.global.b32 %r2, [%out]; setp.lt.u32 %p1, %r2, 3; @%p1 bra L; Z: bar.warp.sync -1; {GO}"
    assert "Deadlock" in broken(body)
    early = f"{GO} {body.replace(GO, '')}"
    assert "Deadlock" not in broken(early)


def test_barriers_and_clusters_of_both_launches_are_apart():
    """The same block of the next launch is another one: what its barrier publishes is not known here."""
    body = f"{GO} {WAIT} mov.u32 %r1, s; mad.lo.u32 %r2, %thread, 4, %r1; st.shared.b32 [%r2], %thread; bar.sync 0; barrier.cluster.arrive; barrier.cluster.wait; xor.b32 %r3, %thread, 32; mad.lo.u32 %r3, %r3, 4, %r1; ld.shared.b32 %r4, [%r3];"
    assert broken(body, threads=64, cluster=2) == set()
    assert "race" in broken(
        body.replace("bar.sync 0; barrier.cluster.arrive; barrier.cluster.wait;", ""),
        threads=64,
        cluster=2,
    )


def test_a_work_queue_hands_out_clusters_of_its_own_launch():
    """`try_cancel` takes none of the next one."""
    ask = """mov.u32 %r0, bar; mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0; @%p0 mbarrier.init.shared.b64 [%r0], 1; @%p0 fence.mbarrier_init.release.cluster; bar.sync 0;
      @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 16; @%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r0];
      L: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra L; ld.shared.b128 %q0, [%r1]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0; griddepcontrol.wait;
      @%p0 red.global.add.u32 [%out], 1; and.pred %p3, %p0, %p2; @%p3 red.global.add.u32 [%out], 1;"""
    result, out = launch(ask, grid=2, schedule="overlapping")
    assert (result.error, out[0]) == (None, 4)
