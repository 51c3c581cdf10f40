"""Timelines of small replays, in nanoseconds."""

from dataclasses import replace

from kernelpack.predict.blocks import Costs
from kernelpack.predict.recording import Await, Step
from kernelpack.predict.replay import Replayer
from kernelpack.predict.timeline import timeline
from kernelpack.spec.launch import Dim3, Plan
from tests.predict.test_replay import DEVICE, LOAD, load_of, recording

COPY = [Step(0, 0, issues=(1,)), Step(0, 0, awaits=(Await(7, 1),))]


def made(clock_ghz: float = 2.0, number: int = 0):
    one = replace(recording(COPY, operations=(load_of(1600),)), all_steps=0, number=number)
    replay = Replayer([one], Costs((), None), DEVICE, LOAD).run(clusters=1, resident=1)
    plan = Plan(
        entry="k", grid=Dim3(4, 2, 1), block=Dim3(32, 1, 1), cluster=Dim3(1, 1, 1),
        shared_bytes=0, arguments=(),
    )  # fmt: skip
    return timeline(replay, plan, (), clock_ghz)


def test_time_is_nanoseconds() -> None:
    """1,011 cycles at 2 GHz; a copy is a bar from its issue to its end, and a warp waits for it."""
    found = made()
    (operation,) = found.operations
    assert (operation.issued, operation.done) == (0, 500)
    (wait,) = found.warps[0].waits
    assert (wait.begin, wait.end) == (0, 506)
    assert wait.cause is not None
    assert wait.cause.operation == operation.number
    assert found.steps == 506


def test_a_slower_clock_takes_longer() -> None:
    assert made(clock_ghz=1.0).steps == 1011


def test_a_cta_is_where_its_cluster_is() -> None:
    """Number 6 of a grid of 4 by 2."""
    assert made(number=6).warps[0].cta == (2, 1, 0)
