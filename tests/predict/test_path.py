"""Critical paths of small recordings, worked out by hand."""

from dataclasses import replace

import pytest

from kernelpack.predict.blocks import Costs
from kernelpack.predict.path import ISSUE, START, WAKE, path, short
from kernelpack.predict.pieces import Pieces
from kernelpack.predict.recording import Await, Operation, Step
from kernelpack.predict.replay import Replay
from kernelpack.predict.replayer import Replayer
from kernelpack.predict.shares import shares
from tests.predict.test_replay import DEVICE, LOAD, load_of, recording

COSTS = Costs((), None)


def replayed(*steps: list[Step], operations: tuple[Operation, ...] = ()) -> Replay:
    one = recording(*steps, operations=operations)
    one = replace(one, all_steps=one.steps)
    return Replayer([one], Pieces(COSTS), DEVICE, LOAD).run(clusters=1, resident=1)


def links(replay: Replay) -> dict[str, float]:
    """Cycles by what they went to."""
    found: dict[str, float] = {}
    for link in path(replay, COSTS):
        found[link.what] = found.get(link.what, 0.0) + link.cycles
    return {what: cycles for what, cycles in found.items() if cycles}


def test_a_wait_for_a_copy_goes_to_the_copy() -> None:
    """Issue to end, and until the warp wakes: 1 + 100 + 900 + 10."""
    found = replayed(
        [Step(0, 0, issues=(1,)), Step(0, 0, awaits=(Await(7, 1),))],
        operations=(load_of(1600),),
    )
    assert links(found) == {"waits for cp.async.bulk.tensor": pytest.approx(1011)}


def test_the_path_goes_on_with_the_warp_that_arrived_last() -> None:
    """An early warp at a barrier has waited for the copy of a late one."""
    late = [
        Step(0, 0, issues=(1,)),
        Step(0, 0, awaits=(Await(7, 1),)),
        Step(0, 0, releases=(3,)),
    ]
    early = [Step(0, 0, awaits=(Await(3, 1),))]
    found = links(replayed(late, early, operations=(load_of(1600),)))
    assert found == {
        "waits for cp.async.bulk.tensor": pytest.approx(1011),
        WAKE: pytest.approx(10),
    }


def test_operations_of_a_queue_lead_to_the_first_issue() -> None:
    """The second MMA waits for the first one: both are on the path, and no gap between."""
    pair = tuple(
        Operation(number, "tcgen05.mma.cta_group::1", 0, 5, [number], columns=256)
        for number in (1, 2)
    )
    steps = [Step(0, 0, issues=(1, 2)), Step(0, 0, awaits=(Await(2, 1),))]
    found = replayed(steps, operations=pair)
    assert links(found) == {"waits for tcgen05.mma": pytest.approx(found.cycles)}


def test_all_of_the_time_is_on_the_path() -> None:
    device = replace(DEVICE, cta_start=600)
    one = recording([Step(0, 0, issues=(1,)), Step(0, 0, awaits=(Await(7, 1),))],
                    operations=(load_of(320),))  # fmt: skip
    found = Replayer([replace(one, all_steps=0)], Pieces(COSTS), device, LOAD).run(
        clusters=1, resident=1
    )
    assert sum(link.cycles for link in path(found, COSTS)) == pytest.approx(found.cycles)
    assert links(found)[START] == 600
    assert sum(share.part for share in shares(found, COSTS)) == pytest.approx(1)
    assert ISSUE not in links(found)


def test_a_replay_in_which_nothing_ran_has_no_path() -> None:
    assert shares(replayed([]), COSTS) == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cp.async.bulk.tensor.2d.shared::cluster.global", "cp.async.bulk.tensor"),
        ("wgmma.mma_async.sync.aligned.m64n256k16.f32", "wgmma.mma_async"),
        ("tcgen05.mma.cta_group::1.kind::f16", "tcgen05.mma"),
        ("st.async.weak.shared::cluster", "st.async"),
        ("cp.reduce.async.bulk.global.shared::cta", "cp.reduce.async.bulk"),
    ],
)
def test_short_names(name: str, expected: str) -> None:
    assert short(name) == expected
