"""Where an MMA's block scales may begin in tensor memory (PTX ISA 9.7.16.10.7.2 and .3)."""

import pytest

from kernelpack.emulator.faults import Level
from kernelpack.emulator.models.instruction_descriptor import Kind, MmaShape
from kernelpack.emulator.models.instruction_rules import Use, lint_scales
from kernelpack.formats.dtype import DType
from tests.emulator.kernel import launch, rules

RULE = "scale-column"
ONE, PAIR = Use(blocks=4), Use(blocks=4, cta_group=2)


def nvfp4(*, m: int = 128, n: int) -> MmaShape:
    """A product of e2m1 with ue4m3 scales."""
    kinds = {"a": DType.E2M1, "b": DType.E2M1, "scale": DType.UE4M3}
    return MmaShape(kind=Kind.MXF4NVF4, m=m, n=n, **kinds)


@pytest.mark.parametrize("n", [8, 32, 40, 64, 128, 256])
@pytest.mark.parametrize(("column", "allowed"), [(4, True), (5, False), (6, True), (7, False)])
def test_scales_of_b(n, column, allowed):
    """They begin at an even column, however many they are: an MMA reads pairs of columns."""
    assert allowed == (not lint_scales(nvfp4(n=n), ONE, (0, column)))


@pytest.mark.parametrize(("column", "allowed"), [(0, True), (2, False), (3, False), (4, True)])
def test_scales_of_a(column, allowed):
    """Those of 128 rows begin at a multiple of their four columns."""
    assert allowed == (not lint_scales(nvfp4(n=64), ONE, (column, 0)))


def test_how_sure_each_is():
    """An odd column of B's is an address that hardware refuses; A's is what every kernel does."""
    levels = [found.rule.level for found in lint_scales(nvfp4(n=8), ONE, (1, 1))]
    assert levels == [Level.ERROR, Level.WARN]


@pytest.mark.parametrize(
    ("m", "columns", "rule"),
    [(256, (4, 1), RULE), (256, (2, 2), RULE), (256, (4, 2), ""), (128, (2, 1), "")],
    ids=["B odd", "A", "right", "halves"],
)
def test_pairs(m, columns, rule):
    """With 256 rows the same holds in both CTAs; with 128, 64 a CTA, nothing is known of B's."""
    assert rule == "".join(
        found.rule.name for found in lint_scales(nvfp4(m=m, n=64), PAIR, columns)
    )


PROGRAM = """
  mov.u32 %r0, bar; mov.u32 %r1, slot; setp.eq.u32 %p0, %thread, 0; setp.ne.u32 %p1, %r0, %r0;
  @%p0 mbarrier.init.shared.b64 [%r0], 1; @%p0 fence.mbarrier_init.release.cluster;
  mov.u32 %r2, s; mov.u32 %r4, 0;
F: mad.lo.u32 %r3, %thread, 4, %r2; st.shared.b32 [%r3], 0; add.u32 %r2, %r2, 128;
  add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 64; @%p2 bra F;
  fence.proxy.async;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32; ld.shared.b32 %r1, [%r1];
  mov.u32 %r5, s; shr.u32 %r6, %r5, 4; cvt.u64.u32 %rd1, %r6; or.b64 %rd1, %rd1, 0x400801000000;
  mov.u32 %r7, 0x8020480; @!%p0 bra W;
  tcgen05.cp.cta_group::1.32x128b.warpx4 [%r1+8], %rd1;
  tcgen05.cp.cta_group::1.32x128b.warpx4 [%r1+12], %rd1;
  tcgen05.cp.cta_group::1.32x128b.warpx4 [%r1+16], %rd1;
  tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16
    [%r1], %rd1, %rd1, %r7, [%r1+8], [%r1+§], %p1;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r0];
W: mbarrier.try_wait.parity.shared.b64 %p3, [%r0], 0; @!%p3 bra W;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
"""


@pytest.mark.parametrize(
    ("column", "expected"), [(12, set()), (13, {RULE}), (14, set()), (15, {RULE})]
)
def test_a_product_of_eight_columns(column, expected):
    """The rule is named where they begin at an odd column, and nothing is at an even one."""
    result, _ = launch(PROGRAM.replace("§", str(column)))
    assert expected == rules(result)
