"""Times of small recordings, worked out by hand."""

from dataclasses import replace

import pytest

from kernelpack.predict.blocks import Costs
from kernelpack.predict.device import find
from kernelpack.predict.pieces import Pieces
from kernelpack.predict.recording import Await, Operation, Recording, Step, Track
from kernelpack.predict.replay import Load
from kernelpack.predict.replayer import Replayer
from kernelpack.predict.servers import Server

DEVICE = replace(
    find("h200"), cta_start=0, wake=10, copy_l2=500, copy_hbm=900, tma_operation=1, tma_rows=0
)
B200 = replace(find("b200"), shared=128, tensor_least=16)
LOAD = Load(hbm=16, ingest=64, missing=(1.0,), cold=(1.0,), stored=(1.0,))


def recording(*steps: list[Step], operations: tuple[Operation, ...] = ()) -> Recording:
    tracks = {n: Track(n, 0, n, list(each)) for n, each in enumerate(steps)}
    return Recording(
        tracks=tracks,
        operations={each.number: each for each in operations},
        traffic=(),
        ctas=(0,),
        columns=0,
        steps=sum(step.count for each in steps for step in each),
        all_steps=0,
        number=0,
    )


def replay(
    one: Recording, *, clusters: int = 1, resident: int = 1, load: Load = LOAD, device=DEVICE
):
    one = replace(one, all_steps=one.steps)
    return Replayer([one], Pieces(Costs((), None)), device, load).run(
        clusters=clusters, resident=resident
    )


def load_of(size: int) -> Operation:
    return Operation(
        1,
        "cp.async.bulk.tensor.2d",
        0,
        None,
        [7],
        global_read=size,
        shared_written={0: size},
        source=0,
    )


def test_a_server_works_in_order() -> None:
    server = Server("x")
    assert [server.take(0, 5), server.take(2, 5), server.take(20, 5)] == [5, 10, 25]
    assert server.busy == 15


def test_a_copy_takes_its_bytes_over_the_rate_and_the_latency() -> None:
    """1,600 bytes at 16 a cycle from memory: 100 cycles, then 900, then 10 until the warp wakes."""
    steps = [Step(0, 0, issues=(1,)), Step(0, 0, awaits=(Await(7, 1),))]
    found = replay(recording(steps, operations=(load_of(1600),)))
    assert found.cycles == pytest.approx(1 + 100 + 900 + 10)


@pytest.mark.parametrize(
    ("name", "columns", "cycles"),
    [
        ("tcgen05.cp.cta_group::1.32x128b.warpx4", 4, 4),
        ("tcgen05.mma.cta_group::1.kind::f16", 8, 16),
        ("tcgen05.mma.cta_group::1.kind::f16", 256, 128),
    ],
)
def test_a_copy_to_tensor_memory_takes_its_bytes_alone(name, columns, cycles) -> None:
    """512 bytes at 128 a cycle; a product takes half a cycle a column, 16 at least."""
    one = Operation(1, name, 0, None, [], columns=columns, shared_read={0: 512})
    found = replay(recording([Step(0, 0, issues=(1,))], operations=(one,)), device=B200)
    assert found.busy["tensor cores"] == cycles


def test_a_barrier_ends_with_the_last_arrival() -> None:
    late = [
        Step(0, 0, issues=(1,)),
        Step(0, 0, awaits=(Await(7, 1),)),
        Step(0, 0, before=(3,), awaits=(Await(3, 2),)),
    ]
    early = [Step(0, 0, before=(3,), awaits=(Await(3, 2),))]
    found = replay(recording(late, early, operations=(load_of(1600),)))
    assert not found.stuck
    assert found.waits[-1].end == pytest.approx(1011 + 10)


def test_what_never_comes_is_noticed() -> None:
    assert replay(recording([Step(0, 0, awaits=(Await(3, 1),))])).stuck


def test_a_cluster_takes_the_place_of_one_that_ended() -> None:
    steps = [Step(0, 0, issues=(1,)), Step(0, 0, awaits=(Await(7, 1),))]
    one = replay(recording(steps, operations=(load_of(1600),)))
    two = replay(recording(steps, operations=(load_of(1600),)), clusters=2)
    beside = replay(recording(steps, operations=(load_of(1600),)), clusters=2, resident=2)
    assert two.cycles == pytest.approx(2 * one.cycles)
    assert beside.cycles == pytest.approx(one.cycles + 100)


def test_the_card_starts_clusters_one_after_another() -> None:
    """Two that have nothing to do, 300 cycles apart; what comes later waits as long."""
    nothing = recording([Step(0, 0)])
    paced = replace(LOAD, pace=300)
    assert replay(nothing, clusters=2, resident=2, load=paced).cycles == 600
    assert replay(nothing, clusters=2, resident=1, load=paced).cycles == 600


def test_what_the_first_clusters_read_comes_from_memory() -> None:
    """Others have read it before the second one: 900 cycles, then 500; half of it is missing."""
    operation = load_of(64)
    one = recording(
        [Step(0, 0, issues=(1,)), Step(0, 0, awaits=(Await(7, 1),))], operations=(operation,)
    )
    shared = replace(LOAD, missing=(0.0,))
    first, both = (replay(one, clusters=n, load=shared).cycles for n in (1, 2))
    assert both - first == pytest.approx(first - 400)
