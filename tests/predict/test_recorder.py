"""What is kept of small kernels that run."""

import numpy as np
import pytest

from kernelpack.emulator.ptx.parser import parse
from kernelpack.predict.inputs import Prepared, prepared
from kernelpack.predict.recorder import CACHED_SECTORS, Recorder
from kernelpack.predict.recording import Recording, Step
from kernelpack.predict.sample import record
from tests.verify.small import DOUBLE, ptx, variant

COPY = """
  mov.b32 %r5, bar;
  setp.ne.u32 %p2, %r4, 0;
  @%p2 bra WAIT;
  mbarrier.init.shared.b64 [%r5], 1;
  mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], 64;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%rd2], 64, [%r5];
WAIT:
  bar.sync 0;
AGAIN:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0;
  @!%p3 bra AGAIN;
"""


def launch(body: str = DOUBLE, n: int = 40) -> Prepared:
    text = ptx(body).text.replace(".b64 bar;", ".b64 bar;\n  .shared .align 128 .b8 box[128];")
    return prepared(parse(text), variant(), {"n": n, "sm_count": 1}, {})


def recorded(body: str = DOUBLE, n: int = 40) -> Recording:
    """The first cluster."""
    return record(launch(body, n))[0]


def steps(one: Recording) -> list[Step]:
    (track,) = one.tracks.values()
    return track.steps


def test_a_warp_reads_and_writes_sectors() -> None:
    """32 lanes of 4 bytes are four sectors of 32 each way, and a line."""
    one = recorded()
    assert sum(step.sectors_read for step in steps(one)) == 4
    assert sum(step.sectors_written for step in steps(one)) == 4
    moved = {traffic.name: traffic for traffic in one.traffic}
    assert (moved["x"].read, moved["x"].written, moved["x"].scattered) == (128, 0, 128)
    assert (moved["y"].read, moved["y"].written, moved["y"].written_lines) == (0, 128, 1)
    assert len(moved["x"].lines) == 1
    assert (moved["x"].size, moved["y"].size) == (160, 160)


def test_a_step_reads_one_and_writes_another() -> None:
    """Which is in L2, and which goes on to memory, is of each its own."""
    one = recorded()
    (step,) = [step for step in steps(one) if step.sectors_read]
    assert step.sectors_written
    assert [one.traffic[n].name for n in (step.source, step.target)] == ["x", "y"]


def test_what_a_cluster_wrote_itself_is_no_row_of_a_list() -> None:
    """L2 has it, however large the array is."""
    again = "mad.wide.u32 %rd4, %r1, 4, %rd1; st.global.f32 [%rd4], %f1; ld.global.f32 %f2, [%rd4];"
    moved = {traffic.name: traffic for traffic in recorded(again).traffic}
    assert (moved["y"].read, moved["y"].scattered, len(moved["y"].lines)) == (128, 0, 0)
    assert (moved["x"].read, moved["x"].scattered) == (128, 128)


def test_what_was_read_just_now_comes_from_l1() -> None:
    again = "ld.global.f32 %f2, [%rd3];"
    assert sum(step.sectors_read for step in steps(recorded(again))) == 4


def test_l1_forgets_the_oldest() -> None:
    """More sectors than it has between two reads: the second one is from L2 again."""
    step, count = 4096, CACHED_SECTORS // 4
    other = "\n".join(f"ld.global.f32 %f2, [%rd3+{128 * n + 128}];" for n in range(count))
    body = f"{other} ld.global.f32 %f2, [%rd3];"
    one = recorded(body, n=step * 64)
    assert sum(step.sectors_read for step in steps(one)) == 4 + 4 * count + 4


@pytest.mark.parametrize(("stride", "wavefronts"), [(4, 1), (8, 2), (128, 32), (0, 1)])
def test_banks_that_several_lanes_want(stride: int, wavefronts: int) -> None:
    """A word of each bank is one pass; of one bank 32 words are 32."""
    body = f"""
  mad.lo.u32 %r5, %r4, {stride}, 0;
  ld.shared.b32 %r6, [%r5];"""
    text = ptx(body).text.replace(".b64 bar;", ".b64 bar;\n  .shared .align 128 .b8 b[8192];")
    made = prepared(parse(text), variant(), {"n": 40, "sm_count": 1}, {})
    assert sum(step.wavefronts for step in steps(record(made)[0])) == wavefronts


def test_a_copy_is_an_operation_that_a_warp_waits_for() -> None:
    """64 bytes to shared memory; what it releases, a later step awaits."""
    one = recorded(COPY)
    (copy,) = one.operations.values()
    (cta,) = one.ctas
    assert copy.name.startswith("cp.async.bulk.shared::cluster.global")
    assert (copy.global_read, copy.shared_written) == (64, {cta: 64})
    assert copy.queue is None
    issuing = next(n for n, step in enumerate(steps(one)) if copy.number in step.issues)
    awaited = {wait.channel for step in steps(one)[issuing + 1 :] for wait in step.awaits}
    assert set(copy.releases) & awaited


def test_a_barrier_is_arrived_at_before_it_is_waited_for() -> None:
    found = [step for step in steps(recorded(COPY)) if step.before]
    assert [step.awaits[0].channel in step.before for step in found] == [True]


def test_steps_are_all_warp_instructions() -> None:
    one = recorded()
    assert one.steps == one.all_steps == sum(step.count for step in steps(one))


def test_clusters_are_from_all_over_the_grid() -> None:
    """Of 20 CTAs: neighbours from the beginning, middle, end and quarters."""
    assert [one.number for one in record(launch(n=640))] == [10, 11, 0, 1, 18, 19, 5, 6, 15, 16]


def test_a_recorder_that_heard_nothing_has_nothing() -> None:
    found = Recorder({0: (64, "x")}).recording(0)
    assert (found.tracks, found.steps, found.traffic[0].read) == ({}, 0, 0)
    assert found.traffic[0].lines.tolist() == np.zeros(0).tolist()
