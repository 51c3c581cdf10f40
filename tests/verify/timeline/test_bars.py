"""What lasted, from when to when, and what it is called."""

import pytest

from kernelpack.emulator.trace import Wait
from kernelpack.verify.timeline.bars import (
    Bar,
    Kind,
    batches,
    beside,
    kind_of,
    short,
    wait_bar,
    without_polls,
)
from tests.verify.timeline.made import LOAD, MMA, mbarrier, operation

COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1]"


@pytest.mark.parametrize(
    ("label", "kind", "name"),
    [
        (MMA, Kind.MULTIPLY, "tcgen05.mma"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1}", Kind.MULTIPLY,
         "wgmma.mma_async"),
        (COMMIT, Kind.COMMIT, "tcgen05.commit"),
        ("tcgen05.ld.sync.aligned.16x256b.x2.b32 {%r1}, [%r2]", Kind.TENSOR, "tcgen05.ld"),
        (LOAD, Kind.LOAD, "cp.async.bulk.tensor.2d"),
        (f"@%p1 {LOAD}", Kind.LOAD, "cp.async.bulk.tensor.2d"),
        ("@!%p1 cp.async.cg.shared.global [%r1], [%rd2], 16", Kind.LOAD, "cp.async.cg"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1]", Kind.STORE,
         "cp.async.bulk.tensor.2d"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1]", Kind.STORE,
         "cp.reduce.async.bulk"),
        ("st.async.weak.shared::cluster.b32 [%r1], %r2, [%r3]", Kind.REMOTE, "st.async"),
        ("red.async.relaxed.cluster.shared::cluster.add.u32 [%r1]", Kind.REMOTE, "red.async"),
        ("new.thing [%r1]", Kind.OTHER, "new.thing"),
    ],
)  # fmt: skip
def test_instructions(label, kind, name):
    """An instruction has a kind, and a name without guard, operands and form."""
    assert (kind_of(label), short(label)) == (kind, name)


@pytest.mark.parametrize(
    ("what", "kind", "name"),
    [
        (mbarrier(0x28400, 3), Kind.MBARRIER, "0x28400 phase 3"),
        ("barrier 0: 64 of 192 threads arrived", Kind.MEET, "barrier 0"),
        ("cluster barrier: 352 of 384 threads arrived", Kind.MEET, "cluster barrier"),
        ("the other lanes of its warp", Kind.MEET, "the other lanes of its warp"),
    ],
)
def test_waits(what, kind, name):
    """A wait for an mbarrier is named by address and phase; others are for other warps."""
    bar = wait_bar(Wait(begin=3, end=9, what=what), "kernel.cu:7")
    assert (bar.begin, bar.end, bar.kind, bar.name) == (3, 9, kind, name)
    assert dict(bar.details) == {"for": what, "at": "kernel.cu:7"}


def test_a_poll_is_one_wait():
    """Waits for the same phase with a few steps between them are one; for another they are not."""
    spans = [(0, 9, "0x8 phase 0"), (12, 20, "0x8 phase 0"), (22, 30, "0x8 phase 1"),
             (90, 99, "0x8 phase 1")]  # fmt: skip
    bars = [Bar(begin=b, end=e, kind=Kind.MBARRIER, name=n) for b, e, n in spans]
    joined = [(bar.begin, bar.end) for bar in without_polls(bars)]
    assert joined == [(0, 20), (22, 30), (90, 99)]


@pytest.mark.parametrize(
    ("wait", "left"),
    [
        ((10, 30), (10, 30)),  # from a run to a run
        ((8, 30), (10, 30)),  # other lanes ran on
        ((10, 33), (10, 30)),  # other lanes ran before
        ((10, 55), (10, 50)),
        ((12, 15), (12, 15)),
        ((2, 7), None),  # other lanes ran all the while
    ],
)
def test_a_wait_beside_runs(wait, left):
    """Lanes may wait while others of their warp run: then the warp runs."""
    runs = [Bar(begin=b, end=e, kind=Kind.RUN, name="") for b, e in ((0, 10), (30, 40), (50, 60))]
    bar = beside(Bar(begin=wait[0], end=wait[1], kind=Kind.MEET, name=""), runs)
    assert (bar and (bar.begin, bar.end)) == left


def spans(*operations):
    return [(bar.begin, bar.end, bar.name) for bar, _ in batches(operations)]


def test_a_pipe_does_one_thing_after_another():
    """What a pipe did together is a bar, which begins when the pipe was free for it."""
    made = [
        operation(1, issued=10, done=30),
        operation(2, issued=12, done=30),
        operation(3, issued=14, done=50),
        operation(4, issued=70, done=80),
    ]
    assert spans(*made) == [
        (10, 30, "2 x tcgen05.mma"), (30, 50, "tcgen05.mma"), (70, 80, "tcgen05.mma"),
    ]  # fmt: skip


def test_copies_in_flight_together_are_a_bar():
    """Copies that overlap fill one stage; the next ones are of its next use."""
    times = [(10, 30), (12, 20), (50, 60)]
    made = [
        operation(n, label=LOAD, issued=i, done=d, ordered=False) for n, (i, d) in enumerate(times)
    ]
    name = "cp.async.bulk.tensor.2d"
    assert spans(*made) == [(10, 30, f"2 x {name}"), (50, 60, name)]


def test_a_bar_may_take_no_time():
    """Under an eager schedule operations take effect where they are issued."""
    assert spans(operation(1, issued=7, done=7)) == [(7, 7, "tcgen05.mma")]


@pytest.mark.parametrize(
    ("labels", "kind"), [([COMMIT, MMA], Kind.MULTIPLY), ([COMMIT], Kind.COMMIT)]
)
def test_a_commit_counts_only_alone(labels, kind):
    """A bar with a commit is of the kind of what it commits."""
    made = [operation(number, label=label) for number, label in enumerate(labels)]
    ((bar, batch),) = batches(made)
    assert (bar.kind, len(batch)) == (kind, len(labels))


def test_no_operations():
    """A unit that did nothing has no bars."""
    assert spans() == []
