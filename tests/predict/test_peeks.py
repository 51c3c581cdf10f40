"""Where a wait is put that a warp asks for early and uses late."""

from kernelpack.emulator.ptx.parser import parse
from kernelpack.predict.inputs import prepared
from kernelpack.predict.peeks import settled
from kernelpack.predict.sample import record
from tests.verify.small import ptx, variant

BEFORE = """
  mov.b32 %r5, bar;
  setp.ne.u32 %p2, %r4, 0;
  @%p2 bra WAIT;
  mbarrier.init.shared.b64 [%r5], 1;
  mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], 64;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%rd2], 64, [%r5];
WAIT:
  bar.sync 0;
"""
BLOCKING = """
AGAIN:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0;
  @!%p3 bra AGAIN;
"""
PEEK = """
  mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0;
  selp.b32 %r6, 1, 0, %p3;
  st.shared.b32 [box+64], %r4;
  bar.sync 0;
  setp.ne.b32 %p2, %r6, 0;
  @%p2 bra DONE;
AGAIN:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0;
  @!%p3 bra AGAIN;
DONE:
"""
UNUSED = """
  mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0;
  mov.pred %p3, 0;
  @%p3 bra DONE;
DONE:
"""


def waits(wait: str) -> list[str]:
    """The instructions that the steps which wait for the copy begin with, or end with a branch."""
    text = ptx(BEFORE + wait).text
    text = text.replace(".b64 bar;", ".b64 bar;\n  .shared .align 128 .b8 box[128];")
    program = parse(text)
    made = prepared(program, variant(), {"n": 40, "sm_count": 1}, {})
    (entry,) = program.entries.values()
    body = entry.body.instructions
    one = settled(record(made)[0], body)
    (copy,) = one.operations.values()
    (track,) = one.tracks.values()
    return [
        body[step.first + step.count - 1].text
        for step in track.steps
        if any(each.channel in copy.releases for each in step.awaits)
    ]


def test_a_wait_that_is_used_at_once_stays() -> None:
    (found,) = waits(BLOCKING)
    assert "bra AGAIN" in found


def test_a_peek_waits_where_its_answer_is_used() -> None:
    """Not before the store and the barrier that come between."""
    (found,) = waits(PEEK)
    assert "bra DONE" in found


def test_an_answer_that_nobody_uses_delays_nobody() -> None:
    assert waits(UNUSED) == []


def test_what_is_settled_stays_so() -> None:
    text = ptx(BEFORE + PEEK).text
    text = text.replace(".b64 bar;", ".b64 bar;\n  .shared .align 128 .b8 box[128];")
    program = parse(text)
    (entry,) = program.entries.values()
    body = entry.body.instructions
    made = prepared(program, variant(), {"n": 40, "sm_count": 1}, {})
    once = settled(record(made)[0], body)
    assert settled(once, body) == once
