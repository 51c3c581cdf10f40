"""What is kept of launches whose clusters differ, or do each other's work."""

from dataclasses import replace
from itertools import pairwise

import pytest

from kernelpack.emulate.watching import Abandoned, Watching
from kernelpack.emulator.faults import StepLimit
from kernelpack.emulator.ptx.parser import parse
from kernelpack.predict.inputs import Prepared, prepared
from kernelpack.predict.sample import CHAIN, Sample, sample
from kernelpack.toolchain.locate import find
from tests.verify.small import DOUBLE, ptx, variant

TAKES_OVER = """
  mov.u32 %r20, bar;
  mov.u32 %r21, answer;
  mov.u32 %r22, 0;
  setp.eq.u32 %p2, %r4, 0;
  @%p2 mbarrier.init.shared.b64 [%r20], 1;
  bar.sync 0;
NEXT:
  @%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r20], 16;
  @%p2 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128
    [%r21], [%r20];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r20], %r22;
  @!%p3 bra WAIT;
  xor.b32 %r22, %r22, 1;
  ld.shared.b128 %q0, [%r21];
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q0;
  bar.sync 0;
  @%p3 bra NEXT;
"""
LOOPS = """
  mov.u32 %r20, 0;
AGAIN:
  add.u32 %r20, %r20, 1;
  setp.lt.u32 %p2, %r20, %r3;
  @%p2 bra AGAIN;
"""
"""As often as a CTA's number says."""
TURN = 9
"""Instructions of a turn of TAKES_OVER, without what is done but once."""


ENDLESS = "ON: add.u32 %r20, %r20, 1;\n bra ON;"


def launch(body: str, n: int) -> Prepared:
    text = ptx(body).text.replace("%r<8>;", "%r<32>; .reg .b128 %q<2>;")
    text = text.replace(".b64 bar;", ".b64 bar;\n  .shared .align 16 .b8 answer[16];")
    return prepared(parse(text), variant(), {"n": n, "sm_count": 1}, {})


def sampled(body: str, n: int = 640) -> Sample:
    return sample(launch(body, n), find())


def test_a_cluster_that_takes_over_others_is_a_chain() -> None:
    found = sampled(TAKES_OVER)
    assert found.chain
    one = found.recordings[0]
    assert found.chain.steps - one.steps == (CHAIN - 1) * TURN
    assert found.chain.number == 20 // (2 * CHAIN)


@pytest.mark.parametrize(("body", "n"), [(DOUBLE, 640), (TAKES_OVER, 64)], ids=["plain", "few"])
def test_no_chain_where_none_is_taken_over(body: str, n: int) -> None:
    assert sampled(body, n).chain is None


def test_clusters_are_counted_all_over_the_grid() -> None:
    """Of a hundred whose work rises, more than are recorded; each by its number."""
    found = sampled(LOOPS, n=100 * 32)
    numbers = sorted(found.steps)
    assert len(numbers) > len(found.recordings) + 8
    rise = {(found.steps[b] - found.steps[a]) / (b - a) for a, b in pairwise(numbers[1:])}
    assert rise == {3}


def test_a_cluster_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up, and the place that it was at is named."""
    monkeypatch.setattr("kernelpack.predict.sample.RECORDED_STEPS", 1000)
    endless = replace(launch(ENDLESS, 32), most_steps=2000)
    with pytest.raises(StepLimit, match="more than 2000 warp instructions in a cluster") as caught:
        sample(endless, find())
    assert caught.value.where.startswith("cta (0, 0, 0) warp 0 — ptx:")


def test_whoever_watches_may_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that has ended waits for no prediction."""
    monkeypatch.setattr("kernelpack.predict.sample.RECORDED_STEPS", 1000)
    watch = Watching("endless", lambda _: None, lambda: False)
    with pytest.raises(Abandoned):
        sample(replace(launch(ENDLESS, 32), watch=watch), find())
