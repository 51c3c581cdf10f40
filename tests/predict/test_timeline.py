"""Timelines of small replays, in nanoseconds."""

from collections.abc import Sequence
from dataclasses import replace

from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.ptx.syntax import Instruction
from kernelpack.emulator.trace import Timeline
from kernelpack.predict.blocks import Costs
from kernelpack.predict.pieces import Pieces
from kernelpack.predict.recording import Await, Recording, Step
from kernelpack.predict.replayer import Replayer
from kernelpack.predict.timeline import timeline
from kernelpack.spec.launch import Dim3, Plan
from tests.predict.test_replay import DEVICE, LOAD, load_of, recording
from tests.verify.small import ptx

COPY = [Step(0, 0, issues=(1,)), Step(0, 0, awaits=(Await(7, 1),))]


def made(clock_ghz: float = 2.0, number: int = 0) -> Timeline:
    one = replace(recording(COPY, operations=(load_of(1600),)), number=number)
    return shown(one, clock_ghz=clock_ghz)


def shown(one: Recording, body: Sequence[Instruction] = (), *, clock_ghz: float = 2.0) -> Timeline:
    one = replace(one, all_steps=one.steps)
    replay = Replayer([one], Pieces(Costs(body, None)), DEVICE, LOAD).run(clusters=1, resident=1)
    plan = Plan(
        entry="k", grid=Dim3(4, 2, 1), block=Dim3(32, 1, 1), cluster=Dim3(1, 1, 1),
        shared_bytes=0, arguments=(),
    )  # fmt: skip
    return timeline(replay, plan, body, clock_ghz)


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


def test_copies_that_fly_together_have_rows_of_their_own() -> None:
    """Two at once are two rows; a third one, issued when both are done, is in the first."""
    copies = tuple(replace(load_of(1600), number=n, releases=[n]) for n in (1, 2, 3))
    steps = [
        Step(0, 0, issues=(1, 2)),
        Step(0, 0, awaits=(Await(1, 1), Await(2, 1))),
        Step(0, 0, issues=(3,)),
    ]
    found = shown(recording(steps, operations=copies))
    names = {unit.agent: unit.name for unit in found.units}
    assert [names[one.unit] for one in found.operations] == [
        "the copies 1", "the copies 2", "the copies 1",
    ]  # fmt: skip


def test_a_wait_is_named_by_its_instruction() -> None:
    text = parse(ptx("WAIT: mbarrier.try_wait.shared.b64 %p2, [bar], %rd1;").text)
    body = text.entry("twice_32").body.instructions
    at = next(n for n, one in enumerate(body) if one.opcode == "mbarrier")
    steps = [Step(0, 0, issues=(1,)), Step(at, 1, awaits=(Await(7, 1),))]
    found = shown(recording(steps, operations=(load_of(1600),)), body)
    (wait,) = found.warps[0].waits
    assert wait.what == f"mbarrier at line {body[at].line}: ptx:{body[at].line}"
