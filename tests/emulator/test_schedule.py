# ruff: noqa: ISC004  (bodies of kernels)
"""Interleavings, deadlocks, limits."""

import pytest

from kernelpack.emulator.faults import Deadlock, Fault, StepLimit, Trap
from kernelpack.emulator.machine.engine import Tempo
from kernelpack.emulator.schedule import Schedule, schedules
from tests.emulator.kernel import launch


@pytest.mark.parametrize(
    ("name", "tempo", "held"),
    [
        ("eager", Tempo.EAGER, None),
        ("fair", Tempo.FAIR, None),
        ("lazy", Tempo.LAZY, None),
        ("starving:1:4", Tempo.LAZY, (1, 4)),
    ],
)
def test_schedules_have_names(name: str, tempo: Tempo, held: tuple[int, int] | None):
    """A name says everything about a schedule but its seed."""
    schedule = Schedule.parse(name)
    assert (tempo, held) == (schedule.tempo, schedule.held)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "greedy",
        "starving",
        "starving:x:1",
        "starving:\u00b2:1",
        "lazy:1",
        f"starving:{'9' * 5000}:0",
    ],
)
def test_unknown_schedules_are_refused(name: str):
    """The hint lists those there are."""
    with pytest.raises(Fault) as caught:
        Schedule.parse(name)
    assert "starving:RANK:WARP" in caught.value.hint


def test_every_warp_is_held_back_once():
    """All schedules of a launch of two CTAs of three warps."""
    names = [schedule.name for schedule in schedules(2, 3)]
    assert names[:3] == ["eager", "fair", "lazy"]
    assert [f"starving:{rank}:{warp}" for rank in range(2) for warp in range(3)] == names[3:]


DEADLOCK = """
  mov.u32 %r0, bar; setp.eq.u32 %p0, %thread, 0;
  @%p0 mbarrier.init.shared.b64 [%r0], 2; bar.sync 0;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 64;
L: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra L;
"""


@pytest.mark.parametrize("schedule", ["eager", "fair", "lazy", "starving:0:1"])
def test_a_deadlock_tells_of_every_wait(schedule: str):
    """Warp, line, barrier, phase, pending arrivals and bytes are in the report."""
    result, _ = launch(DEADLOCK, threads=64, schedule=schedule)
    assert isinstance(result.error, Deadlock)
    assert "phase 0, 1 of 2 arrivals pending, tx 64" in str(result.error)
    assert "warp 0" in str(result.error)
    assert "; and 1 more wait there" in str(result.error)


STARVED = """
  mov.u32 %r0, bar; setp.eq.u32 %p0, %thread, 0; setp.eq.u32 %p2, %warp, 1;
  @%p0 mbarrier.init.shared.b64 [%r0], 1; @%p0 mbarrier.init.shared.b64 [%r0+8], 1; bar.sync 0;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 16;
  @!%p2 bra B;
A: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra A;
B: mbarrier.try_wait.parity.shared.b64 %p1, [%r0+8], 0; @!%p1 bra B;
"""


def test_a_deadlock_tells_what_is_missing_first():
    """A barrier to which something came is first; like waits follow once."""
    error = launch(STARVED, threads=128)[0].error
    _, first, second = str(error).splitlines()
    assert error.where.startswith("cta (0, 0, 0) warp 1 ")
    assert first.startswith("  cta (0, 0, 0) warp 1 ")
    assert first.endswith("phase 0, 0 of 1 arrivals pending, tx 16")
    assert second.endswith("phase 0, 1 of 1 arrivals pending, tx 0; and 2 more waits there")


def test_polling_without_progress_is_a_deadlock():
    """A loop of `test_wait` never ends, and is found out before the step limit."""
    body = DEADLOCK.replace("try_wait", "test_wait")
    assert isinstance(launch(body)[0].error, Deadlock)


def test_an_endless_loop_ends_at_the_step_limit():
    """A loop that computes is stopped by the limit; the place is named."""
    result, _ = launch("L: add.u32 %r0, %r0, 1; bra L;", step_limit=5_000)
    assert isinstance(result.error, StepLimit)
    assert "warp 0" in result.error.where


def test_a_trap_ends_the_run():
    """`trap` is the kernel's own end."""
    assert isinstance(launch("trap;")[0].error, Trap)


@pytest.mark.parametrize(
    "body",
    [
        "mov.u64 %rd1, 0xdeadbeef; ld.global.b32 %r1, [%rd1];",
        "mov.u64 %rd1, 0xffffffffffffff00; st.b32 [%rd1], %r1;",
        "mov.u32 %r1, 0x05000000; st.shared.b32 [%r1], %r1;",
        "mov.u32 %r1, 0xfffffff0; ld.shared.b32 %r1, [%r1];",
        "ld.local.b32 %r1, [4096];",
        "mov.u64 %rd1, %in; cp.async.bulk.prefetch.tensor.1d.L2.global [%rd1, {0}];"
        " cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {0}], [%r1];",
        "mov.u32 %r1, 0x00ffffff; mov.b64 %rd1, -1;"
        " mov.u32 %r2, 0x8080490; tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd1, %r2, %p0;",
    ],
)
def test_wild_addresses_end_in_a_finding_or_a_fault(body: str):
    """Nothing a kernel does crashes Python."""
    result, _ = launch(body)
    assert not result.clean


def test_clusters_that_wait_for_each_other_become_resident():
    """A CTA that spins on a flag of a later one lets the later one start."""
    body = """
      mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1; @%p1 bra SET;
    L: ld.acquire.gpu.global.b32 %r2, [%out]; setp.eq.u32 %p2, %r2, 0; @%p2 bra L;
      bra DONE;
    SET: setp.eq.u32 %p3, %thread, 0; @%p3 st.release.gpu.global.b32 [%out], 5;
    DONE:
    """
    result, out = launch(body, grid=2)
    assert (result.error, out[0]) == (None, 5)


def test_a_seed_decides():
    """The same seed gives the same run, step for step."""
    first, second = (launch(DEADLOCK, schedule="lazy", seed=7)[0] for _ in range(2))
    assert (first.steps, str(first.error)) == (second.steps, str(second.error))


@pytest.mark.parametrize(("rank", "warp"), [(2, 0), (0, 3), (99, 99)])
def test_a_warp_that_is_not_there(rank: int, warp: int):
    """A warp that a launch does not have cannot be held back."""
    with pytest.raises(Fault, match=r"no warp to hold back(.|\n)*0 to 1(.|\n)*0 to 2"):
        Schedule.parse(f"starving:{rank}:{warp}").check(2, 3)


@pytest.mark.parametrize("name", ["starving:1:2", "starving:0:0", "lazy"])
def test_a_warp_that_is_there(name: str):
    """Those it has can be, and a schedule need not hold any."""
    assert Schedule.parse(name).check(2, 3) is None


@pytest.mark.parametrize("name", ["starving:0:1", "starving:1:0"])
def test_a_warp_that_is_not_there_cannot_be_held_back(name: str):
    """It would be `lazy` under another name."""
    with pytest.raises(Fault, match="no warp to hold back"):
        launch("", schedule=name)
