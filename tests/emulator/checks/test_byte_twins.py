# ruff: noqa: E501  (tables of programs: one a line)
"""Twins of bytes and halves of one word, which are places of their own (PTX ISA 8.1, 8.10)."""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.checks.twins import Twins, broken
from tests.emulator.kernel import launch, rules

FOUR = {"threads": 128}
STRICT = {"level": Level.STRICT}
SHARED = (
    "mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; add.u32 %r3, %r2, %warp; add.u32 %r4, %r2, §; "
)
GLOBAL = "mad.wide.u32 %rd1, %lane, 4, %out; cvt.u64.u32 %rd2, %warp; add.u64 %rd2, %rd1, %rd2; mov.b32 %r4, §; cvt.u64.u32 %rd3, %r4; add.u64 %rd3, %rd1, %rd3; "
OWN, OTHER = "%warp", "1"
WRITTEN = "st.shared.b8 [%r3], %thread;"
WARPS = [
    # a byte of each of four warps: read again, written again
    Twins("race", f"{SHARED} {WRITTEN} ld.shared.b8 %r5, [%r4]; st.shared.b8 [%r3], %thread;", OTHER, OWN, **FOUR),
    Twins("race", f"{GLOBAL} st.global.b8 [%rd2], %thread; ld.global.b8 %r5, [%rd3]; st.global.b8 [%rd2], %thread;", OTHER, OWN, **FOUR),
    Twins("race", f"{SHARED} {WRITTEN} st.shared.b8 [%r4], %warp;", OTHER, OWN, **FOUR),
    # the whole word, with what another warp wrote of it, or read
    Twins("race", f"{SHARED} {WRITTEN} § ld.shared.b32 %r5, [%r2];".replace("§", "0", 1), "", "bar.sync 0;", **FOUR),
    Twins("race", f"{SHARED} {WRITTEN} bar.sync 0; ld.shared.b8 %r5, [%r3]; § st.shared.b32 [%r2], 7; bar.sync 0;".replace("§", "0", 1), "", "bar.sync 0; setp.eq.u32 %p1, %warp, 2; @%p1", **FOUR),
    Twins("race", f"{GLOBAL} ld.global.b8 %r5, [%rd2]; § st.global.b32 [%rd1], 7; bar.sync 0;".replace("§", "0", 1), "", "bar.sync 0; setp.eq.u32 %p1, %warp, 2; @%p1", **FOUR),
    # the byte of the first warp, which others wrote beside, is read by the last one
    Twins("race", f"{SHARED} setp.eq.u32 %p1, %warp, 3; @!%p1 {WRITTEN} § @%p1 ld.shared.b8 %r5, [%r2];".replace("§", "0", 1), "", "bar.sync 0;", **FOUR),
    # a word read before a barrier; after it, a half is read and the other one is written
    Twins("race", "setp.eq.u32 %p1, %warp, 0; ld.global.b32 %r5, [%out]; bar.sync 0; @%p1 ld.global.b16 %r5, [%out]; @!%p1 st.global.b16 [%out+§], 5;", "0", "2", threads=64),
]  # fmt: skip
HALF = "mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 2, %r1; xor.b32 %r3, %r2, 2; st.shared.b16 [%r2], 7;"
LANES = [
    Twins("warp-sync", f"{HALF} ld.shared.b16 %r4, [§];", "%r3", "%r2", **STRICT),
    Twins("warp-sync", f"{HALF} § ld.shared.b16 %r4, [%r3];", "", "bar.warp.sync -1;", **STRICT),
    Twins("warp-sync", f"{HALF} § ld.shared.b32 %r4, [%r1];", "", "bar.warp.sync -1;", **STRICT),
    Twins("warp-sync", "setp.eq.u32 %p0, %lane, 0; setp.eq.u32 %p1, %lane, 1; @%p0 st.global.b16 [%out], 7; @%p1 ld.global.b16 %r3, [%out+§];", "0", "2", **STRICT),
    Twins("warp-sync", ".reg .b16 %h; mov.b16 %h, 0; setp.eq.u32 %p0, %lane, 0; setp.eq.u32 %p1, %lane, 1; @%p0 atom.global.cas.b16 %h, [%out], %h, %h; @%p1 st.global.b16 [%out+§], 7;", "0", "2", **STRICT),
]  # fmt: skip
TWINS = [*WARPS, *LANES]


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: t.rule)
def test_the_bad_twin_is_caught(twins: Twins):
    """The rule is named."""
    assert twins.rule in broken(twins, twins.bad)


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: t.rule)
def test_the_good_twin_is_not(twins: Twins):
    """And no other rule either."""
    assert broken(twins, twins.good) == set()


@pytest.mark.parametrize("schedule", ["eager", "fair", "lazy", "starving:0:1"])
@pytest.mark.parametrize("kind", ["b8", "b16"])
def test_what_a_warp_fills_in_parts_is_whole(kind: str, schedule: str):
    """A row of narrow values of each warp, in memory that another warp filled before."""
    size = int(kind[1:]) // 8
    body = f"mov.u32 %r1, s; mad.lo.u32 %r2, %thread, {size}, %r1; xor.b32 %r3, %r2, {32 * size}; st.shared.{kind} [%r2], 7; bar.sync 0; st.shared.{kind} [%r3], 8; ld.shared.{kind} %r4, [%r3]; bar.sync 0; ld.shared.b32 %r5, [%r1];"
    assert rules(launch(body, threads=64, schedule=schedule)[0]) == set()
