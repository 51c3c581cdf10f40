"""Bands, bounds and errors of predictions, from recordings that are made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.errors import KernelpackError
from kernelpack.predict.blocks import Costs
from kernelpack.predict.device import find
from kernelpack.predict.estimate import early, estimate, on, written
from kernelpack.predict.gains import LATENCY, gains
from kernelpack.predict.grid import Card, shape
from kernelpack.predict.prediction import LAUNCH, POOR_CLOCK, bound_of, favourable, poor, predict
from kernelpack.predict.recording import Await, Recording, Step, Traffic
from kernelpack.predict.replay import Replay
from kernelpack.predict.sample import CHAIN, Sample
from kernelpack.predict.traffic import LINE_BYTES
from kernelpack.spec.launch import Dim3, Plan
from kernelpack.toolchain.issued import MachineCode
from tests.predict.test_replay import load_of, recording

H200 = replace(find("h200"), ingest=64, l2_tbs=9.2, tma_rows=2, tma_operation=6)


def sample(*recordings: Recording, clusters: int = 1, written: int = 0) -> Sample:
    one = Dim3(1, 1, 1)
    plan = Plan(
        entry="k", grid=Dim3(clusters, 1, 1), block=Dim3(32, 1, 1), cluster=one,
        shared_bytes=0, arguments=(),
    )  # fmt: skip
    traffic = Traffic(name="x", size=1 << 30, read=0, written=written, scattered=0,
                      lines=np.zeros(0, np.int64), written_lines=written // LINE_BYTES)  # fmt: skip
    kept = [replace(one, traffic=(traffic,), all_steps=one.steps) for one in recordings]
    code = MachineCode(counts={}, registers=32, shared_bytes=0)
    steps = {each.number: each.all_steps for each in kept}
    return Sample(plan=plan, recordings=tuple(kept), steps=steps, code=code, costs=Costs((), None))


def test_a_cluster_that_takes_over_others_starts_once() -> None:
    """Of 264 clusters a place does two: it starts twice, or once where the first takes over."""
    alone = sample(copied(64_000), clusters=264)
    alone = replace(alone, plan=replace(alone.plan, shared_bytes=200_000))
    chain = replace(alone, chain=replace(copied(64_000, turns=CHAIN), steps=6, all_steps=6))
    device = replace(H200, cta_start=5000.0, cta_pace=0.0)
    card = Card(clock_ghz=1.0)
    taken, begun = (on(each, device, card).cycles for each in (chain, alone))
    assert begun - taken == pytest.approx(5000, abs=1)


def test_a_launch_lasts_until_memory_has_all() -> None:
    """132 clusters store 8 MB each, of all of which L2 keeps 50 MB; 4.4 MB take 1,000 cycles."""
    device = replace(H200, hbm_tbs=4.4, hbm_write=1, l2_mb=50, egress=1e9, cta_start=1000)
    stores = recording([Step(0, 0, sectors_written=250_000, target=0)])
    one = sample(stores, clusters=132, written=8_000_000)
    found = on(one, device, Card(clock_ghz=1.0)).cycles
    assert found == pytest.approx((1056 - 50) / 4.4 * 1000, rel=0.01)


def test_memory_takes_what_l2_cannot_keep() -> None:
    """Twice as long as the CTAs run, but for 50 MB at 4.4 TB/s: 22,500 cycles at 1.98 GHz."""
    found = Replay(recording=copied(64), cycles=1000, busy={"HBM": 2000})
    device = replace(H200, hbm_tbs=4.4, l2_mb=50)
    late = written(100_000, found, device, Card(clock_ghz=1.98))
    assert late == pytest.approx(200_000 - 22_500)


@pytest.mark.parametrize(("clusters", "hidden"), [(66, 400), (88, 200), (132, 0)])
def test_a_launch_begins_early_where_there_is_room(clusters: int, hidden: int) -> None:
    """What it does before it waits, if both fit; of 132 places 44 are free: half of the CTAs."""
    plan = replace(sample(copied(64)).plan, grid=Dim3(clusters, 1, 1), shared_bytes=200_000)
    code = MachineCode(counts={}, registers=32, shared_bytes=0)
    found = Replay(recording=copied(64), cycles=1000, waited=400, triggered=100)
    assert early(found, shape(plan, code, H200)) == pytest.approx(hidden)


def copied(size: int, *, turns: int = 1, at_once: bool = False) -> Recording:
    """A warp that copies so many bytes, and waits; so often, or first all copies."""
    operations = [replace(load_of(size), number=n + 1, releases=[n]) for n in range(turns)]
    issues = [Step(0, 0, issues=(each.number,)) for each in operations]
    waits = [Step(0, 0, awaits=(Await(n, 1),)) for n in range(turns)]
    steps = [step for pair in zip(issues, waits, strict=True) for step in pair]
    return recording([*issues, *waits] if at_once else steps, operations=tuple(operations))


def test_the_band_holds_the_middle() -> None:
    found = predict(sample(copied(1600)), H200)
    assert found.low < found.middle < found.high


def test_both_ends_are_the_device_with_other_numbers() -> None:
    good, bad = favourable(H200), poor(H200)
    assert (good.copy_hbm, bad.copy_hbm) == (0.8 * H200.copy_hbm, 1.25 * H200.copy_hbm)
    assert (good.l2_tbs, bad.l2_tbs) == (1.25 * H200.l2_tbs, 0.75 * H200.l2_tbs)
    assert (good.clock_ghz, bad.clock_ghz) == (H200.clock_ghz, POOR_CLOCK * H200.clock_full_ghz)
    assert bad.clock_ghz < H200.clock_full_ghz


@pytest.mark.parametrize(
    ("turns", "at_once", "launch_us", "expected"),
    [
        (1, False, 9, LAUNCH),
        (200, False, 1, LATENCY),
        (200, True, 1, "L2 to shared memory"),
    ],
)
def test_what_binds(turns: int, at_once: bool, launch_us: float, expected: str) -> None:
    """A short launch is its launch; copies one by one are latency, and many at once are bytes."""
    one = copied(16_000, turns=turns, at_once=at_once)
    device = replace(H200, launch_us=launch_us)
    assert predict(sample(one, clusters=132), device).bound == expected


def test_of_units_that_work_most_of_the_time_one_binds_that_saves() -> None:
    """Memory that only takes what L2 hands on holds nobody up."""
    found = estimate(sample(copied(16_000, turns=200), clusters=132), H200)
    found = replace(found, busy={"HBM": 0.97, "stores": 0.87, "issue": 0.5})
    saved = {"HBM": 0.0, "stores": 0.42, "issue": 0.45, LATENCY: 0.5}
    assert bound_of(found, H200, saved) == "stores"


def test_a_warm_l2_has_what_it_has_room_for() -> None:
    """A copy from L2 ends 400 cycles before one from memory, but for more than L2 has room for."""
    device = replace(H200, copy_l2=280, copy_hbm=680, hbm_tbs=1e6, l2_tbs=1e6, l2_mb=50)
    few, many = (reading(copied(16_000), clusters=n) for n in (132, 132 * 64))
    for one, saved in ((few, 400), (many, 0)):
        cold, warm = (estimate(one, device, is_warm=is_warm) for is_warm in (False, True))
        assert cold.cycles - warm.cycles == pytest.approx(saved)
        assert warm.card.is_warm is bool(saved)


def reading(one: Recording, *, clusters: int) -> Sample:
    """A grid each of whose clusters reads 16,000 bytes of its own."""
    lines = (np.arange(125, dtype=np.int64) + far for far in (0, 1 << 22))
    found = sample(one, replace(one, number=1), clusters=clusters)
    kept = [
        replace(each, traffic=(replace(each.traffic[0], read=16_000, lines=own),))
        for each, own in zip(found.recordings, lines, strict=True)
    ]
    return replace(found, recordings=tuple(kept))


@pytest.mark.parametrize("number", [0, 132])
def test_a_cluster_has_all_its_neighbours(number: int) -> None:
    """Of 264 clusters two lie on a multiprocessor, whichever of them was recorded."""
    stores = recording([Step(0, 0, sectors_written=1000, target=0)])
    device = replace(H200, egress=32, cta_start=100, cta_pace=0)
    one = sample(replace(stores, number=number), clusters=264)
    assert on(one, device, Card(clock_ghz=1.0)).cycles == pytest.approx(100 + 2 * 1000)


def test_what_twice_as_fast_saves() -> None:
    """200 copies, one by one: 250 cycles each at 64 bytes a cycle, then 280 and 40 of latency."""
    one = sample(copied(16_000, turns=200), clusters=132)
    device = replace(H200, l2_tbs=1e6, tma_rows=0.1, copy_l2=280, wake=40, cta_start=1000)
    found = estimate(one, device)
    saved = {name: part * found.cycles for name, part in gains(one, device, found).items()}
    assert saved["L2 to shared memory"] == pytest.approx(200 * 125)
    assert saved[LATENCY] == pytest.approx(200 * (140 + 20) + 500)
    assert saved.keys() == {"L2 to shared memory", LATENCY}


def test_a_unit_that_hides_behind_another_saves_nothing() -> None:
    """Copies that are all started at once: L2 works on, TMA and latencies lie beside it."""
    one = sample(copied(16_000, turns=200, at_once=True), clusters=132)
    found = predict(one, replace(H200, l2_tbs=1e6, tma_rows=1.6))
    assert found.busy["TMA"] > 0.75
    assert found.gains["TMA"] < 0.01
    assert found.gains["L2 to shared memory"] > 0.15


def test_cycles_are_those_of_a_cluster() -> None:
    """50 rows of 2 cycles each, of one cluster and of many that take turns."""
    one, many = (predict(sample(copied(6400), clusters=n), H200) for n in (1, 132 * 64))
    assert one.estimate.replay.clusters < many.estimate.replay.clusters
    assert (one.cycles["TMA"], many.cycles["TMA"]) == (100, 100)


def test_a_replay_that_stands_still_has_no_time() -> None:
    stuck = recording([Step(0, 0, awaits=(Await(3, 1),))])
    with pytest.raises(KernelpackError, match="waits for what never comes, so no time is given"):
        predict(sample(stuck), H200)
