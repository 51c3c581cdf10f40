# ruff: noqa: E501  (a table of programs: one a line)
"""A CTA is reached into by others of its cluster only after it is known to have started.

Each program is run twice: with nothing where `§` is, and with what orders it after the start.
"""

import pytest

from tests.emulator.kernel import launch, rules

RULE = "cta-not-started"
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"
MEET_RELAXED = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"

OTHER = "mov.u32 %r0, bar; mov.u32 %r1, s; xor.b32 %r10, %rank, 1; mapa.shared::cluster.u32 %r3, %r1, %r10; mapa.shared::cluster.u32 %r4, %r0, %r10; setp.eq.u32 %p0, %thread, 0; setp.eq.u32 %p1, %rank, 0; and.pred %p2, %p0, %p1;"
"""%r3, %r4: `s` and `bar` of the other CTA; %p0: the first thread, %p2: that of rank 0."""
BARRIER = (
    "@%p0 mbarrier.init.shared.b64 [%r0], 1; @%p0 fence.mbarrier_init.release.cluster; bar.sync 0;"
)
ARM = "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 128;"

PROGRAMS = {
    "a pair allocates": f"mov.u32 %r0, slot; § tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r0], 32; ld.shared.b32 %r1, [%r0]; {MEET} tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 32;",
    "a load": f"{OTHER} @%p0 st.shared.b32 [%r1], 7; § @%p0 ld.shared::cluster.b32 %r5, [%r3]; {MEET}",
    "a store": f"{OTHER} § @%p0 st.shared::cluster.b32 [%r3], 7; {MEET}",
    "a generic store": f"{OTHER} cvt.u64.u32 %rd1, %r3; cvta.shared::cluster.u64 %rd1, %rd1; § @%p0 st.b32 [%rd1], 7; {MEET}",
    "an atomic": f"{OTHER} @%p0 st.shared.b32 [%r1], 7; § @%p0 red.shared::cluster.add.u32 [%r3], 7; {MEET}",
    "a remote arrival": f"{OTHER} {BARRIER} § @%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4]; {MEET}",
    "a store that completes there": f"{OTHER} {BARRIER} § @%p0 st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r3], %thread, [%r4]; {MEET}",
    "a multicast": f"{OTHER} {BARRIER} {ARM} § @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%in], 128, [%r0], 3; {MEET}",
    "a copy of shared memory": f"{OTHER} {BARRIER} {ARM} § @%p2 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r3], [%r1], 128, [%r4]; {MEET}",
    "a commit": f"{OTHER} {BARRIER} § @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r0], 3; {MEET}",
    "the next cluster's number": f"{OTHER} {BARRIER} @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 16; § @%p2 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%r1], [%r0]; {MEET}",
}


def found(body: str, *, threads: int = 32) -> set[str]:
    """The rules that a program of two CTAs breaks."""
    result, _ = launch(body, threads=threads, grid=2, cluster=2)
    return rules(result)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_before_anything_orders_it(program: str) -> None:
    """It is found where nothing comes from the other CTA first."""
    assert RULE in found(program.replace("§", ""))


@pytest.mark.parametrize("meet", [MEET, MEET_RELAXED], ids=["release", "relaxed"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_after_a_cluster_barrier(program: str, meet: str) -> None:
    """A cluster barrier shows that all have started, whatever it says of memory."""
    assert RULE not in found(program.replace("§", meet))


BY_ANOTHER_WARP = {
    "signalled by a CTA barrier": ("barrier.cluster.wait; bar.sync 0;", set()),
    "not signalled": ("bar.sync 0; barrier.cluster.wait;", {RULE}),
}


@pytest.mark.parametrize(("order", "expected"), BY_ANOTHER_WARP.values(), ids=BY_ANOTHER_WARP)
def test_what_another_warp_knows(order: str, expected: set[str]) -> None:
    """One warp waits for the cluster; the one that stores must hear of it."""
    body = f"""{OTHER} barrier.cluster.arrive.relaxed; setp.eq.u32 %p3, %warp, 1; @!%p3 bra A;
      {order} bra B;
      A: bar.sync 0; @%p2 st.shared::cluster.b32 [%r3], 7;
      B: {MEET}"""
    assert found(body, threads=64) & {RULE} == expected


FLAG = """@%p1 bra R;
  @%p0 st.release.gpu.global.b32 [%out], 1; bra B;
  R: ld.§.global.b32 %r5, [%out]; setp.eq.u32 %p3, %r5, 0; @%p3 bra R;
  @%p0 ld.shared::cluster.b32 %r6, [%r3];
"""


@pytest.mark.parametrize(("order", "expected"), [("weak", {RULE}), ("acquire.gpu", set())])
def test_an_arrival_from_there(order: str, expected: set[str]) -> None:
    """A word that the other CTA released says that it has started, to who acquires it."""
    body = f"{OTHER} {FLAG.replace('§', order)} B: {MEET}"
    assert found(body) & {RULE} == expected


def test_who_and_where() -> None:
    """The finding names what is done, and the CTA that may not be there."""
    result, _ = launch(PROGRAMS["a pair allocates"].replace("§", ""), grid=2, cluster=2)
    (finding,) = (one for one in result.findings if one.rule.name == RULE)
    assert finding.rule.section == "9.7.16.7.1"
    assert finding.message == (
        "tcgen05.alloc of its pair before anything orders it after the start of cta (1, 0, 0): a "
        "cluster barrier, or an arrival from there"
    )


def test_an_own_address_with_a_rank() -> None:
    """A CTA that names itself by its rank needs no other one."""
    body = (
        f"{OTHER} mapa.shared::cluster.u32 %r3, %r1, %rank; st.shared::cluster.b32 [%r3], 7; {MEET}"
    )
    assert found(body) == set()
