"""What tensor copies do to elements on their way, and where they may not start."""

import numpy as np
import pytest

from kernelpack.spec.tensormap import Element, TensorMap
from tests.emulator.kernel import launch, rules

LOAD = """
  mov.u32 %r0, bar; mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0;
  @%p0 mbarrier.init.shared.b64 [%r0], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 128;
  @%p0 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes
      [%r1], [%map, {0}], [%r0];
L: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0;
  @!%p1 bra L;
  mad.lo.u32 %r2, %thread, 4, %r1; ld.shared.b32 %r3, [%r2]; st.global.b32 [%mine], %r3;
"""
STORE = """
  mov.u32 %r1, s; mad.lo.u32 %r2, %thread, 4, %r1; st.shared.b32 [%r2], %thread;
  fence.proxy.async; bar.sync 0; setp.eq.u32 %p0, %thread, 0;
  @%p0 {copy}.1d.global.shared::cta{operation}.bulk_group [%map, {{-4}}], [%r1];
  @%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;
"""


def words(element: Element, address: int) -> TensorMap:
    """Boxes of 32 elements of 4 bytes."""
    return TensorMap(
        name="words", element=element, address=address, dims=(64,), strides_bytes=(), box=(32,),
        element_strides=(1,),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("element", "expected"), [(Element.TF32, 0x40A8_4000), (Element.FP32, 0x40A8_394D)]
)
def test_tf32_is_rounded(element, expected):
    """A load through a map of tf32 rounds to nearest; through one of fp32 it does not."""
    inputs = np.full(4096, 0x40A8_394D, np.uint32)
    result, out = launch(LOAD, inputs=inputs, tensor_map=lambda source, _: words(element, source))
    assert (result.error, result.findings) == (None, ())
    assert set(out[:32].tolist()) == {expected}


@pytest.mark.parametrize(
    ("copy", "operation"), [("cp.async.bulk.tensor", ""), ("cp.reduce.async.bulk.tensor", ".add")]
)
def test_a_store_below_0_traps(copy, operation):
    """An H200 traps where a store starts at a negative coordinate, though a load is clipped."""
    body = STORE.format(copy=copy, operation=operation)
    result, _ = launch(body, tensor_map=lambda _, out: words(Element.U32, out))
    assert "tma-store-coordinate" in rules(result)
