"""A descriptor names the swizzle of the tensor map that filled its operand."""

import pytest

from kernelpack.spec.tensormap import Element, Swizzle, TensorMap
from tests.emulator.kernel import launch, rules

LOAD = """
  mov.u32 %r0, bar; mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0;
  @%p0 mbarrier.init.shared.b64 [%r0], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 8192;
  @%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
      [%r1], [%map, {0, 0}], [%r0];
L: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0;
  @!%p1 bra L;
"""
REWRITE = """
  mad.lo.u32 %r2, %thread, 16, %r1; mov.u32 %r3, 0;
W: st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3};
  add.u32 %r2, %r2, 2048; add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 4; @%p2 bra W;
  fence.proxy.async; bar.sync 0;
"""
MULTIPLY = """
  shr.u32 %r4, %r1, 4; cvt.u64.u32 %rd1, %r4; or.b64 %rd1, %rd1, {rest};
  mov.b32 %f0, 0; mov.b32 %f1, 0; mov.b32 %f2, 0; mov.b32 %f3, 0;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
      {{%f0, %f1, %f2, %f3}}, %rd1, %rd1, 0, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
"""
MODES = {Swizzle.NONE: 0, Swizzle.B128: 1, Swizzle.B64: 2}


def read_by(mode: Swizzle, between: str = "") -> set[str]:
    """The rules broken by an MMA that reads a box of swizzle B128 by another pattern."""
    rest = MODES[mode] << 62 | 1024 // 16 << 32 | 1 << 16
    result, _ = launch(
        LOAD + between + MULTIPLY.format(rest=rest), threads=128, target="sm_90a",
        tensor_map=lambda source, _: TensorMap(
            name="operand", element=Element.BF16, address=source, dims=(64, 64),
            strides_bytes=(128,), box=(64, 64), element_strides=(1, 1), swizzle=Swizzle.B128,
        ),
    )  # fmt: skip
    return rules(result)


def test_the_same_pattern():
    """The descriptor undoes what the map did."""
    assert read_by(Swizzle.B128) == set()


@pytest.mark.parametrize("mode", [Swizzle.NONE, Swizzle.B64])
def test_another_pattern(mode):
    """Which numbers the MMA gets is not what was meant."""
    assert read_by(mode) == {"swizzle-of-map"}


def test_written_since():
    """Threads may arrange an operand anew where a box was."""
    assert read_by(Swizzle.NONE, REWRITE) == set()
