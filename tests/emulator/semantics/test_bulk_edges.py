# ruff: noqa: E501  (bodies of kernels: one a line)
"""Bulk copies whose ends lie outside, or of which a mask says the bytes (PTX ISA 9.7.9.25.4.1)."""

import numpy as np
import pytest

from kernelpack.emulator import launch
from kernelpack.emulator.faults import Fault, PtxError
from tests.emulator.kernel import text

HEAD = (
    "mov.u32 %r0, bar; mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0; mad.lo.u32 %r2, %lane, 4, %r1;"
)
LOAD = """
  @%p0 mbarrier.init.shared.b64 [%r0], 1; @%p0 fence.mbarrier_init.release.cluster;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 128;
  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r1], [%in], 128, {left}, {right}, [%r0];
  bar.warp.sync -1; L: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra L;
  ld.shared.b32 %r3, [%r2]; st.global.b32 [%mine], %r3;
"""
STORE = """
  st.shared.b32 [%r2], %lane; fence.proxy.async; bar.warp.sync -1;
  @%p0 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%out], [%r1], 128, %h;
  @%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;
"""
WORDS = np.arange(30, dtype=np.uint32)
"""120 bytes: a copy of 128 goes past the end."""


def run(body: str, out: np.ndarray, schedule: str = "eager") -> set[str]:
    """The rules that a warp breaks."""
    module = text(f".reg .b16 %h; {HEAD} {body}").replace(", .param .align 64 .b8 p_map[128]", "")
    module = module.replace("mov.b64 %map, p_map;", "").replace("cvta.param.u64 %map, %map;", "")
    result = launch(module, "test", 1, 32, out, WORDS, schedule=schedule)
    return {finding.rule.name for finding in result.findings}


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize(("right", "found"), [(8, set()), (15, set()), (4, {"bounds"}), (0, {"bounds"})])  # fmt: skip
def test_ignored_bytes_may_lie_outside(right: int, found: set[str], schedule: str):
    """As many as are named, and no more; the copy counts for its mbarrier as a whole."""
    out = np.zeros(32, np.uint32)
    assert run(LOAD.format(left=0, right=right), out, schedule) == found
    assert out[:28].tolist() == WORDS[:28].tolist()


def test_ignored_bytes_are_not_copied():
    """What is in their place is not theirs, though they lie inside."""
    out = np.zeros(32, np.uint32)
    assert run(LOAD.format(left=6, right=8), out) == set()
    assert out[2:30].tolist() == WORDS[2:].tolist()
    assert (out[:2] != WORDS[:2]).all()


@pytest.mark.parametrize(("left", "right"), [(16, 8), (0, 16)])
def test_more_than_fifteen_bytes(left: int, right: int):
    """A whole chunk need not be copied at all."""
    with pytest.raises(Fault, match="0 to 15 may be"):
        run(LOAD.format(left=left, right=right), np.zeros(32, np.uint32))


@pytest.mark.parametrize("mask", [0xFFFF, 0x00F0, 0x0F01, 0])
def test_a_mask_of_bytes(mask: int):
    """Bit i says whether byte i of every sixteen is stored; other bytes keep what they had."""
    out = np.full(32, 0xAAAA_AAAA, np.uint32)
    assert run(f"mov.b16 %h, {mask}; {STORE}", out) == set()
    chosen = np.tile([bool(mask >> byte & 1) for byte in range(16)], 8)
    want = np.where(chosen, np.arange(32, dtype=np.uint32).view(np.uint8), 0xAA)
    assert out.view(np.uint8).tolist() == want.tolist()


@pytest.mark.parametrize(
    ("copy", "says"),
    [
        ("cp.async.bulk.global.shared::cta.bulk_group.ignore_oob [%out], [%r1], 128;", "from global to shared"),
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.cp_mask [%r1], [%in], 128, [%r0], %h;", "to global memory"),
    ],
)  # fmt: skip
def test_directions(copy: str, says: str):
    """Each qualifier has one."""
    with pytest.raises(PtxError, match=says):
        run(copy, np.zeros(32, np.uint32))
