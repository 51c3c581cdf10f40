"""What a listener knows of a run afterwards: who ran when, waited for what, and who ended it."""

import numpy as np
import pytest

from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.run import Result, run
from kernelpack.emulator.trace import Recorder, Timeline
from kernelpack.spec.launch import Dim3, Plan, Pointer
from tests.emulator.kernel import _no_map, text

INIT = (
    "mov.u32 %r30, bar; mov.u32 %r29, s; setp.eq.u32 %p0, %thread, 0; "
    "@%p0 mbarrier.init.shared.b64 [%r30], 1; fence.proxy.async; bar.sync 0;"
)
COPY = (
    "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 128; @%p0 cp.async.bulk.shared::cluster."
    "global.mbarrier::complete_tx::bytes [%r29], [%in], 128, [%r30];"
)
WAIT = "W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r30], 0; @!%p5 bra W;"


def recorded(
    body: str, *, threads: int = 32, grid: int = 1, schedule: str = "lazy"
) -> tuple[Result, Timeline]:
    """Run a body with nothing but a recorder listening."""
    memory = GlobalMemory(1 << 20)
    out, given = (memory.put(np.zeros(4096, np.uint32), name) for name in ("out", "in"))
    arguments = (Pointer(out), Pointer(given), _no_map(given))
    plan = Plan(entry="test", grid=Dim3(grid), block=Dim3(threads), arguments=arguments)
    recorder = Recorder()
    result = run(text(body), plan, memory, checks=(recorder.join,), schedule=schedule)
    return result, recorder.timeline


def test_steps_are_those_of_the_run():
    """Runs of all warps, one after another, are every step of the run, each once."""
    result, timeline = recorded("bar.sync 0;", threads=96, grid=2)
    spans = sorted((r.begin, r.end) for warp in timeline.warps for r in warp.runs)
    assert timeline.steps == result.steps
    assert [begin for begin, _ in spans] == [0, *(end for _, end in spans[:-1])]
    assert spans[-1][1] == result.steps


def test_warps_know_their_place():
    """A warp is known by its CTA and its index."""
    _, timeline = recorded("", threads=64, grid=2)
    places = {(warp.cta, warp.index) for warp in timeline.warps}
    assert places == {((x, 0, 0), index) for x in (0, 1) for index in (0, 1)}


def test_counts_are_instructions():
    """What a warp ran, by the instruction it begins with, adds up to what it ran at all."""
    _, timeline = recorded("bar.sync 0; add.u32 %r1, %thread, 1;")
    (warp,) = timeline.warps
    assert sum(count for _, count in warp.counts) == timeline.steps


def test_an_operation_lasts_from_issue_to_effect():
    """Under `lazy` a copy takes effect when its waiter can do nothing else."""
    _, timeline = recorded(INIT + COPY + WAIT)
    (copy,), (warp,) = timeline.operations, timeline.warps
    assert "cp.async.bulk.shared::cluster.global" in copy.label
    assert copy.issuer == warp.agent
    assert copy.issued < copy.done <= warp.waits[-1].end


def test_eager_operations_take_no_time():
    """Under `eager` a copy takes effect where it is issued, and nobody waits."""
    _, timeline = recorded(INIT + COPY + WAIT, schedule="eager")
    (copy,) = timeline.operations
    assert copy.issued == copy.done
    assert timeline.warps[0].waits == ()


def test_a_copy_ends_a_wait():
    """A wait says what for, in the words of a deadlock's report, and which operation ended it."""
    _, timeline = recorded(INIT + COPY + WAIT)
    wait = timeline.warps[0].waits[-1]
    assert wait.what.startswith("mbarrier 0x")
    assert "for parity 0: phase 0, 0 of 1 arrivals pending, tx 128" in wait.what
    assert (wait.cause.operation, wait.cause.step) == (1, timeline.operations[0].done)


def test_units_have_names():
    """The copies on an mbarrier are a unit of its CTA."""
    _, timeline = recorded(INIT + COPY + WAIT)
    (unit,) = timeline.units
    assert unit.agent == timeline.operations[0].unit
    assert (unit.cta, unit.name[:24]) == ((0, 0, 0), "the copies on mbarrier 0")


def test_a_pipe_is_one_unit_for_all_its_threads():
    """Commits of two warps go to the tensor pipe of the CTA; who issued one is its issuer."""
    commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r30];"
    body = INIT + f"setp.eq.u32 %p1, %lane, 0; @%p1 {commit}"
    _, timeline = recorded(body, threads=64)
    (unit,) = timeline.units
    assert (unit.name, {o.unit for o in timeline.operations}) == ("the tensor pipe", {unit.agent})
    assert {o.issuer for o in timeline.operations} == {warp.agent for warp in timeline.warps}


def test_the_last_to_arrive_ends_a_wait():
    """At `bar.sync` the first warp waits, until the second one arrives."""
    _, timeline = recorded("bar.sync 0;", threads=64, schedule="eager")
    first, second = timeline.warps
    (wait,) = first.waits
    assert second.waits == ()
    assert (wait.cause.agent, wait.cause.operation) == (second.agent, 0)


def test_a_wait_stands_at_an_instruction():
    """The instruction of a wait is the one that the warp runs next."""
    _, timeline = recorded("bar.sync 0;", threads=64, schedule="eager")
    (wait,) = timeline.warps[0].waits
    assert wait.at in dict(timeline.warps[0].counts)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_a_deadlock_shows_its_waits(schedule):
    """Waits that never end are part of the timeline, up to its last step."""
    result, timeline = recorded(INIT + WAIT, schedule=schedule)
    wait = timeline.warps[0].waits[-1]
    assert type(result.error).__name__ == "Deadlock"
    assert (wait.end, wait.at, wait.cause) == (timeline.steps, None, None)


def test_a_recorder_reports_nothing():
    """It is joined as a check is, and finds no fault."""
    result, _ = recorded("st.global.b32 [%mine+65536], 1;")
    assert result.findings == ()
