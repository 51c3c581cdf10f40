# ruff: noqa: E501  (bodies of kernels)
"""tcgen05.mma with A in tensor memory: each group of lanes multiplies its own A (9.7.16.10.5)."""

from dataclasses import dataclass

import numpy as np
import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.kernel import launch, rules

N = 128
BFLOAT16 = {1: 0x3F80_3F80, 2: 0x4000_4000, 3: 0x4040_4040, 4: 0x4080_4080}
SINGLE = {1: 0x3F80_0000, 2: 0x4000_0000, 3: 0x4040_0000, 4: 0x4080_0000}
E4M3 = {1: 0x3838_3838, 2: 0x4040_4040, 3: 0x4444_4444, 4: 0x4848_4848}
INT8 = {1: 0x0101_0101, 2: 0x0202_0202, 3: 0x0303_0303, 4: 0x0404_0404}


@dataclass(frozen=True)
class Kind:
    """A kind of MMA: elements along K, the types of the descriptor, numbers as words of operands."""

    name: str
    k: int
    types: int
    words: dict[int, int]
    output: type = np.float32


KINDS = [
    Kind("f16", 16, 1 << 4 | 1 << 7 | 1 << 10, BFLOAT16),
    Kind("tf32", 8, 1 << 4 | 2 << 7 | 2 << 10, SINGLE),
    Kind("f8f6f4", 32, 1 << 4, E4M3),
    Kind("i8", 32, 2 << 4 | 1 << 7 | 1 << 10, INT8, np.int32),
]


@dataclass(frozen=True)
class Shape:
    """A form of the instruction, and into how many groups of lanes its layout folds N."""

    ctas: int
    m: int
    ws: bool
    groups: int

    def __str__(self) -> str:
        return f"cta_group::{self.ctas}{'.ws' if self.ws else ''} M = {self.m}"


SHAPES = [
    Shape(1, 128, ws=False, groups=1),
    Shape(1, 128, ws=True, groups=1),
    Shape(1, 64, ws=True, groups=2),
    Shape(1, 32, ws=True, groups=4),
    Shape(2, 256, ws=False, groups=1),
    Shape(2, 128, ws=False, groups=2),
]


def pick(register: str, index: str, words: dict[int, int], numbers: list[int]) -> str:
    """PTX: a register = the word of `numbers[index]`."""
    chosen = [f"mov.b32 {register}, {words[numbers[0]]};"]
    for at, number in enumerate(numbers[1:], 1):
        chosen += [f"setp.eq.u32 %p9, {index}, {at}; @%p9 mov.b32 {register}, {words[number]};"]
    return " ".join(chosen)


def body(kind: Kind, shape: Shape, a: list[int], b: list[int]) -> str:
    """Quadrant q of lanes holds `a[q]`, quarter q of the rows of B holds `b[q]`; D's first column.

    Without swizzle, a thread's 32 bytes of B belong to rows 8 * (thread / 8) and following.
    """
    pair = shape.ctas == 2
    # A CTA of a pair holds half of B's rows: two threads write the same ones, of 64 row parts.
    part = "shr.u32 %r22, %thread, 1;" if pair else "mov.b32 %r22, %thread;"
    quarter = "shr.u32 %r20, %r22, 5; mad.lo.u32 %r20, %rank, 2, %r20;"
    ws, every = ".ws" if shape.ws else "", ".multicast::cluster" if pair else ""
    descriptor = kind.types | N // 8 << 17 | shape.m // 16 << 24
    meet = "barrier.cluster.arrive; barrier.cluster.wait;" if pair else "bar.sync 0;"
    fenced = f"tcgen05.fence::before_thread_sync; {meet} tcgen05.fence::after_thread_sync;"
    group = f"cta_group::{shape.ctas}"
    return f"""
      .reg .b16 %h1; setp.eq.u32 %p0, %warp, 0; setp.eq.u32 %p1, %thread, 0; setp.eq.u32 %p2, %rank, 0;
      and.pred %p2, %p1, %p2; mov.u32 %r30, bar; mov.u32 %r31, slot; mov.u32 %r1, s;
      @%p1 mbarrier.init.shared.b64 [%r30], 1; @%p1 fence.mbarrier_init.release.cluster;
      {meet}
      @%p0 tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [%r31], 256;
      {part} {quarter} {pick("%r2", "%r20", kind.words, b)}
      mad.lo.u32 %r3, %r22, 32, %r1;
      st.shared.v4.b32 [%r3], {{%r2, %r2, %r2, %r2}}; st.shared.v4.b32 [%r3+16], {{%r2, %r2, %r2, %r2}};
      fence.proxy.async.shared::cta; {fenced}
      ld.shared.b32 %r5, [%r31]; shl.b32 %r6, %warp, 21; add.u32 %r6, %r5, %r6;
      {pick("%r7", "%warp", kind.words, a)}
      tcgen05.st.sync.aligned.32x32b.x8.b32 [%r6+128], {{%r7, %r7, %r7, %r7, %r7, %r7, %r7, %r7}};
      tcgen05.wait::st.sync.aligned; {fenced}
      shr.u32 %r8, %r1, 4; and.b32 %r8, %r8, 0x3FFF; cvt.u64.u32 %rd1, %r8; or.b64 %rd1, %rd1, 0x0000401000080000;
      add.u32 %r9, %r5, 128; mov.b32 %r10, {descriptor}; setp.ne.u32 %p3, %thread, %thread; mov.b16 %h1, 3;
      @%p2 tcgen05.mma{ws}.{group}.kind::{kind.name} [%r5], [%r9], %rd1, %r10, %p3;
      @%p2 tcgen05.commit.{group}.mbarrier::arrive::one.shared::cluster{every}.b64 [%r30]{", %h1" if pair else ""};
    W: mbarrier.try_wait.parity.shared.b64 %p4, [%r30], 0; @!%p4 bra W;
      tcgen05.fence::after_thread_sync;
      tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r11}}, [%r6]; tcgen05.wait::ld.sync.aligned;
      mad.wide.u32 %mine, %rank, 512, %mine; st.global.b32 [%mine], %r11;
      {fenced}
      @%p0 tcgen05.dealloc.{group}.sync.aligned.b32 %r5, 256;
    """


def run(kind, shape, a, level=Level.WARN):
    """The result, and D's first column of every CTA as (CTA, quadrant, lane)."""
    text = body(kind, shape, a, [1, 2, 3, 4])
    result, out = launch(text, threads=128, grid=shape.ctas, cluster=shape.ctas, level=level)
    words = out[: 128 * shape.ctas].view(kind.output)
    return result, words.reshape(shape.ctas, 4, 32)


def expected(kind, shape, a):
    """A group's first column of D: K times its own A times the first row of its own part of B."""
    group = np.arange(4) * shape.groups // 4
    first_row = np.array([1, 2, 3, 4])[group * 4 // shape.groups]
    return np.broadcast_to((kind.k * np.array(a) * first_row)[None, :, None], (shape.ctas, 4, 32))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_each_group_of_lanes_multiplies_its_own_a(kind: Kind, shape: Shape):
    """Different A in groups of lanes are products of their own; below `strict` nothing is found."""
    a = [4, 3, 2, 1]
    result, d = run(kind, shape, a)
    assert (result.error, result.findings) == (None, ())
    assert expected(kind, shape, a).tolist() == d.tolist()


@pytest.mark.parametrize(
    ("a", "found"), [([2, 2, 1, 1], {"tensor-memory-copies"}), ([2, 2, 2, 2], set())]
)
def test_different_a_is_told_at_strict(a: list[int], found: set[str]):
    """An ordinary product has the same A in every group of lanes."""
    result, _ = run(KINDS[0], Shape(1, 64, ws=True, groups=2), a, level=Level.STRICT)
    assert found == rules(result)
