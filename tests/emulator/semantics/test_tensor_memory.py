"""Tensor memory as instructions see it: where it is allocated, and when stores take effect."""

import pytest

from tests.emulator.kernel import launch, rules

ALLOCATE = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;"
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;"
PAIR_ALLOCATE = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;" + ALLOCATE.replace(
    "::1", "::2"
)
PAIR_FREE = FREE.replace("::1", "::2")
BEGIN = "mov.u32 %r0, slot;"
ADDRESS = "ld.shared.b32 %r1, [%r0];"


@pytest.mark.parametrize(("schedule", "column"), [("eager", 0), ("fair", 0), ("lazy", 480)])
def test_a_late_schedule_gives_the_last_columns(schedule: str, column: int):
    """Beside a neighbour the first address need not be 0: seen by a kernel that takes it for 0."""
    body = f"{BEGIN} {ALLOCATE} {ADDRESS} st.global.b32 [%mine], %r1; {FREE}"
    result, out = launch(body, schedule=schedule)
    assert column == out[0]
    assert result.clean


def test_a_cta_alone_on_its_multiprocessor_is_given_column_0():
    """No other CTA can hold the first columns where one has most of the shared memory."""
    body = f"""{BEGIN} .shared .align 16 .b8 large[60000];
               {ALLOCATE} {ADDRESS} st.global.b32 [%mine], %r1; {FREE}"""
    result, out = launch(body, schedule="lazy")
    assert out[0] == 0
    assert result.clean


def test_a_second_allocation_lies_beside_the_first():
    """Under a late schedule too, what fits in tensor memory fits in any order."""
    second = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 256;"
    body = f"""{BEGIN} {ALLOCATE} {ADDRESS} {second} ld.shared.b32 %r2, [%r0];
               st.global.b32 [%mine], %r2; {FREE} {FREE.replace("%r1, 32", "%r2, 256")}"""
    result, out = launch(body, schedule="lazy")
    assert out[0] == 480 - 256
    assert result.clean


@pytest.mark.parametrize("schedule", ["eager", "lazy", "starving:0:0", "starving:1:0"])
def test_a_pair_allocates_the_same_columns(schedule: str):
    """Both CTAs are given one address, though only one of them had columns before."""
    body = f"""{BEGIN} mad.wide.u32 %mine, %rank, 128, %mine; {PAIR_ALLOCATE} {ADDRESS}
               st.global.b32 [%mine], %r1;
               barrier.cluster.arrive; barrier.cluster.wait; {PAIR_FREE}"""
    result, out = launch(body, grid=2, cluster=2, schedule=schedule)
    assert out[0] == out[32]
    assert result.clean


def test_a_pair_allocates_together():
    """The CTA whose peer does not allocate waits for it; the report says so."""
    body = f"""{BEGIN} setp.eq.u32 %p0, %rank, 1; @%p0 bra Z;
               {PAIR_ALLOCATE} {ADDRESS} {PAIR_FREE} Z:"""
    result, _ = launch(body, grid=2, cluster=2)
    assert "no warp of cta (1, 0, 0), its pair's other, has issued it" in str(result.error)


def test_a_store_takes_effect_before_its_warp_tells_others():
    """Even late, and with no wait for it: the wait is missing, the value is right."""
    body = f"""{BEGIN} setp.eq.u32 %p0, %warp, 0; @%p0 bra A; bra B;
               A: {ALLOCATE} B: bar.sync 0; {ADDRESS}
               tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {{7}};
               bar.sync 0; @!%p0 bra Z;
               tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r3}}, [%r1]; st.global.b32 [%mine], %r3;
               Z: bar.sync 0; @%p0 bra F; bra E; F: {FREE} E:"""
    result, out = launch(body, threads=64, schedule="lazy")
    assert set(out[:32]) == {7}
    assert rules(result) == {"race"}


def test_packing_fills_the_registers_of_a_load():
    """A move of two registers into one reads them; it is no move by reference."""
    body = f"""{BEGIN} {ALLOCATE} {ADDRESS}
               tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {{5, 6}};
               tcgen05.wait::st.sync.aligned;
               tcgen05.ld.sync.aligned.32x32b.x2.b32 {{%r3, %r4}}, [%r1];
               mov.b64 %rd1, {{%r3, %r4}}; st.global.b64 [%out], %rd1; {FREE}"""
    result, out = launch(body, schedule="lazy")
    assert out[:2].tolist() == [5, 6]
    assert result.clean
