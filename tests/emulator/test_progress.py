# ruff: noqa: E501  (bodies of kernels)
"""Late is as late as may be, and no later: what is held back or pending, who polls, who is stuck.

Warp 0 and warp 1; `FLAG` is the word after what all threads store.
"""

from collections.abc import Callable

import numpy as np
import pytest

from kernelpack.emulator import runner
from kernelpack.emulator.core import attempt
from kernelpack.emulator.faults import Deadlock, StepLimit
from tests.emulator.kernel import launch

ROLES = "setp.eq.u32 %p0, %warp, 0; setp.eq.u32 %p1, %lane, 0; mov.u32 %r20, s; @%p1 st.shared.b32 [%r20], 0; @%p1 st.shared.b32 [%r20+4], 0; bar.sync 0;"


def count(turns: int) -> str:
    """A loop that computes, and whose end nothing else decides."""
    return f"mov.u32 %r9, 0; C: add.u32 %r9, %r9, 1; setp.lt.u32 %p9, %r9, {turns}; @%p9 bra C;"


def read_late(turns: int, schedule: str) -> int:
    """Warp 1 stores 1 after a barrier; warp 0 counts, then reads it, with nothing in between."""
    body = f"{ROLES} @%p0 bra R; @%p1 st.volatile.shared.b32 [%r20], 1; bra END; R: {count(turns)} ld.volatile.shared.b32 %r1, [%r20]; st.global.b32 [%mine], %r1; END:"
    result, out = launch(body, threads=64, schedule=schedule)
    assert result.error is None
    return int(out[0])


@pytest.mark.parametrize("turns", [1, 100, 300, 10_000])
def test_a_warp_is_held_back_while_another_computes(turns: int):
    """However long: it moves only when every other warp waits or polls."""
    assert read_late(turns, "starving:0:1") == 0


def test_a_warp_that_is_not_held_back_goes_on():
    """The same kernel by itself."""
    assert read_late(10_000, "eager") == 1


ISSUE = {
    "cp.async": "@%p1 cp.async.ca.shared.global [%r20], [%in], 4; cp.async.commit_group;",
    "a bulk copy": "mov.u32 %r21, bar; @%p1 mbarrier.init.shared.b64 [%r21], 1; @%p1 fence.mbarrier_init.release.cluster; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r21], 16; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r20], [%in], 16, [%r21];",
    "st.async": "mov.u32 %r21, bar; @%p1 mbarrier.init.shared.b64 [%r21], 1; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r21], 4; @%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r20], 7, [%r21];",
}


@pytest.mark.parametrize("turns", [1, 1_000, 10_000])
@pytest.mark.parametrize("what", ISSUE)
def test_an_operation_is_late_while_a_warp_computes(what: str, turns: int):
    """What was not waited for has not happened, under `lazy`; who reads it reads the old word."""
    body = f"{ROLES} {ISSUE[what]} {count(turns)} ld.shared.b32 %r1, [%r20]; st.global.b32 [%mine], %r1;"
    inputs = np.full(64, 7, np.uint32)
    outs = {}
    for schedule in ("eager", "lazy"):
        outs[schedule] = int(launch(body, schedule=schedule, inputs=inputs)[1][0])
    assert outs == {"eager": 7, "lazy": 0}


POLLS = {
    "volatile": "L: ld.volatile.shared.b32 %r1, [%r20]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;",
    "relaxed": "L: ld.relaxed.cta.shared.b32 %r1, [%r20]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;",
    "acquire": "L: ld.acquire.cta.shared.b32 %r1, [%r20]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;",
    "plain": "L: ld.shared.b32 %r1, [%r20]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;",
    "cas": "L: atom.shared.cas.b32 %r1, [%r20], 2, 3; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;",
    "or": "L: atom.shared.or.b32 %r1, [%r20], 0; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;",
    "counting": "mov.u32 %r9, 0; L: add.u32 %r9, %r9, 1; ld.volatile.shared.b32 %r1, [%r20]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;",
    "plain, counting": "mov.u32 %r9, 0; L: add.u32 %r9, %r9, 1; ld.shared.b32 %r1, [%r20]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;",
    "sleeping": "mov.u32 %r9, 1; L: ld.volatile.shared.b32 %r1, [%r20]; nanosleep.u32 %r9; shl.b32 %r9, %r9, 1; min.u32 %r9, %r9, 256; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;",
    "timed": "mov.u64 %rd3, %clock64; L: mov.u64 %rd4, %clock64; sub.u64 %rd4, %rd4, %rd3; setp.gt.u64 %p3, %rd4, 100000000; @%p3 trap; ld.volatile.shared.b32 %r1, [%r20]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;",
    "storing": "L: st.volatile.shared.b32 [%r20+4], 1; ld.volatile.shared.b32 %r1, [%r20]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;",
    "spilling": ".local .align 4 .b8 mem[16]; mov.u32 %r8, mem; mov.u32 %r9, 0; L: add.u32 %r9, %r9, 1; st.local.b32 [%r8], %r9; ld.volatile.shared.b32 %r1, [%r20]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;",
}
WRITER = f"{count(500)} mov.u32 %r10, 0; S: add.u32 %r10, %r10, 1; @%p1 st.volatile.shared.b32 [%r20+8], %r10; setp.lt.u32 %p8, %r10, 60; @%p8 bra S; membar.cta; @%p1 st.volatile.shared.b32 [%r20], 5;"


@pytest.mark.parametrize("schedule", ["eager", "fair", "lazy", "starving:0:0", "starving:0:1"])
@pytest.mark.parametrize("poll", POLLS)
def test_who_polls_lets_the_held_one_move(poll: str, schedule: str):
    """No kind of spinning keeps the warp that it waits for from its turn."""
    body = (
        f"{ROLES} @%p0 bra R; {WRITER} bra END; R: {POLLS[poll]} st.global.b32 [%mine], %r1; END:"
    )
    result, out = launch(body, threads=64, schedule=schedule, step_limit=2_000_000)
    assert (result.error, out[0]) == (None, 5)


@pytest.mark.parametrize("schedule", ["eager", "lazy", "starving:0:0", "starving:0:1"])
@pytest.mark.parametrize(
    "poll", [name for name in POLLS if name not in ("timed", "plain, counting")]
)
def test_spinning_for_what_does_not_come_is_a_deadlock(poll: str, schedule: str):
    """The writer waits at a barrier: nothing can change any more, and that is reported."""
    body = f"{ROLES} @%p0 bra R; bar.sync 1, 64; {WRITER} bra END; R: {POLLS[poll]} bar.sync 1, 64; END:"
    result, _ = launch(body, threads=64, schedule=schedule, step_limit=2_000_000)
    assert isinstance(result.error, Deadlock)


ARRIVAL = "mov.u32 %r21, bar; @%p1 mbarrier.init.shared.b64 [%r21], 1; bar.sync 0;"
ASK = "mbarrier.test_wait.parity.shared.b64 %p2, [%r21], 0; @!%p2 bra L;"


def steps_beside(changes: int, schedule: str) -> int:
    """Of a launch whose warp 0 polls an mbarrier, at which warp 1 arrives after some stores."""
    store = f"mov.u32 %r10, 0; S: add.u32 %r10, %r10, 1; @%p1 st.volatile.shared.b32 [%r20], %r10; setp.lt.u32 %p8, %r10, {changes}; @%p8 bra S;"
    arrive = "@%p1 mbarrier.arrive.shared.b64 _, [%r21];"
    body = f"{ROLES} {ARRIVAL} @%p0 bra L; {store} {arrive} bra END; L: {ASK} END:"
    result, _ = launch(body, threads=64, schedule=schedule, step_limit=2_000_000)
    assert result.error is None
    return result.steps


@pytest.mark.parametrize("schedule", ["eager", "fair", "lazy", "starving:0:0", "starving:0:1"])
def test_who_polls_mbarriers_sleeps_until_one_answers_otherwise(schedule: str):
    """A store elsewhere costs the steps of the loop that stores, and none of the one that polls."""
    assert steps_beside(2_000, schedule) - steps_beside(1_000, schedule) == 1_000 * 4


@pytest.mark.parametrize("schedule", ["eager", "fair", "lazy"])
def test_who_reads_a_word_as_well_goes_on_polling(schedule: str):
    """Warp 0 polls an mbarrier that never completes, and sees a word that warp 1 then waits for."""
    other = "@%p1 st.volatile.shared.b32 [%r20], 1; W: ld.volatile.shared.b32 %r3, [%r20+4]; add.u32 %r9, %r9, 1; @%p1 st.volatile.shared.b32 [%r20+8], %r9; setp.lt.u32 %p8, %r9, 2000; setp.eq.u32 %p7, %r3, 0; and.pred %p8, %p8, %p7; @%p8 bra W; st.global.b32 [%mine], %r9;"
    poll = "L: ld.shared.b32 %r1, [%r20]; setp.ne.u32 %p3, %r1, 0; @%p3 bra F; mbarrier.test_wait.parity.shared.b64 %p2, [%r21], 0; @!%p2 bra L; F: @%p1 st.volatile.shared.b32 [%r20+4], 1;"
    body = f"{ROLES} {ARRIVAL} mov.u32 %r9, 0; @%p0 bra L; {other} bra END; {poll} END:"
    result, out = launch(body, threads=64, schedule=schedule, step_limit=2_000_000)
    assert result.error is None
    assert out[32] < 2_000


def test_a_lock_held_back():
    """Four warps take a lock in turn, whichever of them is held back."""
    body = f"""
      {ROLES} setp.eq.u32 %p3, %lane, 0; @!%p3 bra END;
    L: atom.acquire.cta.shared.cas.b32 %r1, [%r20], 0, 1; setp.ne.u32 %p2, %r1, 0; @%p2 bra L;
      ld.shared.b32 %r2, [%r20+4]; add.u32 %r2, %r2, 1; st.shared.b32 [%r20+4], %r2;
      mad.wide.u32 %rd1, %r2, 4, %out; st.global.b32 [%rd1], %r2;
      st.release.cta.shared.b32 [%r20], 0;
    END:"""
    for schedule in ("eager", "fair", "lazy", *(f"starving:0:{warp}" for warp in range(4))):
        result, out = launch(body, threads=128, schedule=schedule)
        assert (result.error, out[:5].tolist()) == (None, [0, 1, 2, 3, 4]), schedule


@pytest.mark.parametrize("schedule", ["eager", "lazy", "starving:0:0"])
def test_a_lock_between_the_lanes_of_a_warp(schedule: str):
    """Lanes that spin let the one that holds the lock go on, as on every GPU since Volta."""
    body = f"""
      {ROLES}
    L: atom.acquire.cta.shared.cas.b32 %r1, [%r20], 0, 1; setp.ne.u32 %p2, %r1, 0; @%p2 bra L;
      ld.volatile.shared.b32 %r2, [%r20+4]; add.u32 %r2, %r2, 1; st.volatile.shared.b32 [%r20+4], %r2;
      st.release.cta.shared.b32 [%r20], 0; st.global.b32 [%mine], %r2;"""
    result, out = launch(body, schedule=schedule)
    assert (result.error, sorted(out[:32].tolist())) == (None, list(range(1, 33)))


@pytest.mark.parametrize("schedule", ["eager", "fair", "lazy", "starving:0:1"])
def test_a_barrier_of_a_grid(schedule: str):
    """Blocks that spin until all have come let the later ones begin."""
    body = """
      setp.eq.u32 %p0, %thread, 0; @!%p0 bra B; atom.release.gpu.global.add.u32 %r1, [%out], 1;
    L: atom.acquire.gpu.global.cas.b32 %r1, [%out], 99, 99; setp.lt.u32 %p1, %r1, 3; @%p1 bra L;
    B: bar.sync 0; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r2, %r2, 64, %thread; mad.wide.u32 %rd1, %r2, 4, %out;
      st.global.b32 [%rd1+4], %r2;"""
    result, out = launch(body, threads=64, grid=3, schedule=schedule)
    assert (result.error, out[:193].tolist()) == (None, [3, *range(192)])


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_a_warp_that_slept_may_compute(schedule: str):
    """It is not a deadlock that all others wait meanwhile."""
    body = f"{ROLES} @!%p0 bra B; nanosleep.u32 10; {count(20_000)} B: bar.sync 0; st.global.b32 [%mine], 3;"
    result, out = launch(body, threads=64, schedule=schedule)
    assert (result.error, out[0]) == (None, 3)


@pytest.mark.parametrize("asks", [1, 45, 3_000])
@pytest.mark.parametrize(
    "ask",
    [
        "ld.volatile.shared.b32 %r1, [%r20];",
        "mbarrier.test_wait.parity.shared.b64 %p2, [%r21], 0; selp.b32 %r1, 1, 0, %p2;",
        "mbarrier.try_wait.parity.shared.b64 %p2, [%r21], 0; selp.b32 %r1, 1, 0, %p2;",
    ],
)
def test_who_gives_up_polling_goes_on(ask: str, asks: int):
    """A loop that asks so many times and then does something else is not stuck."""
    body = f"""
      {ROLES} mov.u32 %r21, bar; setp.eq.u32 %p3, %thread, 0; @%p3 mbarrier.init.shared.b64 [%r21], 1; bar.sync 0;
      @!%p0 bra B; mov.u32 %r9, 0;
    L: {ask} add.u32 %r9, %r9, 1; setp.eq.u32 %p4, %r1, 0; setp.lt.u32 %p5, %r9, {asks}; and.pred %p4, %p4, %p5; @%p4 bra L;
    B: bar.sync 0; st.global.b32 [%mine], 3;"""
    result, out = launch(body, threads=64, schedule="lazy")
    assert (result.error, out[0]) == (None, 3)


@pytest.mark.parametrize("schedule", ["eager", "lazy", "starving:0:1"])
def test_a_long_computation_is_no_deadlock(schedule: str):
    """Nor is it one where all others wait for it, or there are none."""
    body = f"{ROLES} @!%p0 bra B; {count(80_000)} B: bar.sync 0; st.global.b32 [%mine], 3;"
    result, out = launch(body, threads=64, schedule=schedule, step_limit=1_000_000)
    assert (result.error, out[0]) == (None, 3)


UNTIL = "mov.u64 %rd3, %T; add.u64 %rd3, %rd3, 3000000000; L: § mov.u64 %rd4, %T; setp.lt.u64 %p3, %rd4, %rd3; @%p3 bra L;"
ALL = ("eager", "fair", "lazy", "starving:0:0", "starving:0:1")


@pytest.mark.parametrize("schedule", ALL)
@pytest.mark.parametrize("wait", ["", "nanosleep.u32 100;", "ld.volatile.shared.b32 %r1, [%r20];"])
@pytest.mark.parametrize("who", ["", "@!%p0 bra B;", "@!%p1 bra B;"])
def test_time_passes_where_all_wait_for_it(who: str, wait: str, schedule: str):
    """Three seconds, by a loop of all warps, of one while the other waits, of a lane of each."""
    body = f"{ROLES} {who} {UNTIL.replace('%T', '%globaltimer' if wait else '%clock64').replace('§', wait)} B: bar.warp.sync -1; bar.sync 0; st.global.b32 [%mine], 3;"
    result, out = launch(body, threads=64, schedule=schedule)
    assert (result.error, result.findings, out[0]) == (None, (), 3)


@pytest.mark.parametrize("schedule", ALL)
def test_who_gives_up_after_a_time_goes_on(schedule: str):
    """What it polls for does not come, and that is not a deadlock."""
    body = f"{ROLES} @!%p0 bra B; mov.u64 %rd3, %clock64; L: ld.volatile.shared.b32 %r1, [%r20]; mov.u64 %rd4, %clock64; sub.u64 %rd4, %rd4, %rd3; setp.gt.u64 %p3, %rd4, 100000000; @%p3 bra B; setp.eq.u32 %p2, %r1, 0; @%p2 bra L; B: bar.sync 0; st.global.b32 [%mine], 3;"
    result, out = launch(body, threads=64, schedule=schedule)
    assert (result.error, out[0]) == (None, 3)


@pytest.mark.parametrize("schedule", ["eager", "lazy", "starving:0:0", "starving:0:1"])
def test_time_does_not_pass_while_somebody_computes(schedule: str):
    """Who would give up after a time waits for a warp that is long at work."""
    body = f"{ROLES} @%p0 bra R; {count(60_000)} @%p1 st.volatile.shared.b32 [%r20], 5; bra END; R: {POLLS['timed']} st.global.b32 [%mine], %r1; END:"
    result, out = launch(body, threads=64, schedule=schedule, step_limit=3_000_000)
    assert (result.error, out[0]) == (None, 5)


def test_a_clock_that_nobody_waits_for_hides_no_deadlock():
    """A loop may read the time and poll for ever."""
    body = f"{ROLES} mov.u64 %rd3, 0; L: mov.u64 %rd4, %clock64; add.u64 %rd3, %rd3, %rd4; ld.volatile.shared.b32 %r1, [%r20]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;"
    result, _ = launch(body, threads=64)
    assert isinstance(result.error, Deadlock)


def test_a_loop_that_ends_while_others_come_to_rest_is_no_deadlock(monkeypatch: pytest.MonkeyPatch):
    """Who polls so often that it seems to be stuck, and goes on at the last moment, is let go on."""
    monkeypatch.setattr(runner, "STUCK_NODES", 100)
    ask = "ld.volatile.shared.b32 %r1, [%r20]; add.u32 %r9, %r9, 1; setp.lt.u32 %p5, %r9,"
    ends = set()
    for asks in range(40, 80):
        body = f"{ROLES} mov.u32 %r9, 0; L: {ask} {asks}; @%p5 bra L; st.global.b32 [%mine], 3;"
        result, out = launch(body, compiled=False)
        ends.add((type(result.error), int(out[0])))
    assert ends == {(type(None), 3), (Deadlock, 0)}


def test_an_endless_loop_with_others_waiting_ends_at_the_step_limit():
    """Computing for ever is not polling."""
    body = f"{ROLES} @!%p0 bra B; L: add.u32 %r1, %r1, 1; bra L; B: bar.sync 0;"
    result, _ = launch(body, threads=64, step_limit=20_000)
    assert isinstance(result.error, StepLimit)


def test_a_circle_without_a_change_is_a_deadlock():
    """`L: bra L` is certain to go on for ever; the limit is not waited for."""
    result, _ = launch("L: mov.u32 %r1, 5; bra L;")
    assert isinstance(result.error, Deadlock)


@pytest.mark.parametrize("schedule", ["eager", "fair", "lazy"])
@pytest.mark.parametrize(
    "spin",
    ["L: ld.shared.b32 %r1, [%r20]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;", POLLS["volatile"]],
)
def test_lanes_that_spin_let_the_others_of_their_warp_go_on(spin: str, schedule: str):
    """Each part of a divergent warp has its turn, on whichever side of the branch it is."""
    for first in ("@%p3 bra W;", "@!%p3 bra R;"):
        sides = [
            f"W: {count(300)} st.volatile.shared.b32 [%r20], 5; bra END;",
            f"R: {spin} bra END;",
        ]
        body = f"{ROLES} setp.eq.u32 %p3, %lane, 3; {first} {' '.join(sides if 'R' in first else sides[::-1])} END: ld.volatile.shared.b32 %r1, [%r20]; st.global.b32 [%mine], %r1;"
        result, out = launch(body, schedule=schedule)
        assert (result.error, out[0]) == (None, 5)


class Watcher:
    """Ends a run at its third look, and keeps what it gets."""

    def __init__(self) -> None:
        self.looks: list[str] = []
        self.stands: tuple[str, ...] = ()

    def look(self, _steps: int, place: Callable[[], str]) -> None:
        self.looks.append(place())
        if len(self.looks) == 3:
            raise KeyboardInterrupt

    def stopped(self, _steps: int, stands: tuple[str, ...]) -> None:
        self.stands = stands


def test_a_run_that_is_stopped_says_where_every_warp_stands():
    """Whoever watches is shown the place between rounds, and at the end all of them."""
    watcher = Watcher()
    body = f"{ROLES} @!%p0 bra B; {count(80_000)} B: bar.sync 0;"
    with pytest.raises(KeyboardInterrupt):
        launch(body, threads=96, watch=watcher, compiled=False)
    assert watcher.looks[2].startswith("cta (0, 0, 0) warp ")
    running, waiting = sorted(watcher.stands)
    assert running.endswith("runs, or polls without progress")
    assert waiting.endswith("barrier 0: 64 of 96 threads arrived; and 1 more wait there")


def test_a_compiled_run_that_is_stopped_says_where_every_warp_stands():
    """There each warp is named, and whether it waits; not for what."""
    if isinstance(attempt.core(), str):
        pytest.skip("there is no C++ compiler: the Python engine runs all")
    watcher = Watcher()
    body = f"{ROLES} @!%p0 bra B; {count(200_000)} B: bar.sync 0;"
    with pytest.raises(KeyboardInterrupt):
        launch(body, threads=96, watch=watcher, step_limit=10_000_000)
    assert watcher.looks[2].startswith("cta (0, 0, 0) warp ")
    running, *waiting = sorted(watcher.stands, key=lambda stand: stand.endswith("waits"))
    assert running.endswith("runs, or polls without progress")
    assert [stand.endswith("waits") for stand in waiting] == [True, True]
