# ruff: noqa: E501  (a table of programs: one a line)
"""A finding names the lane that is at fault, and the section that it is about."""

import pytest

from kernelpack.emulator import rules
from kernelpack.emulator.checks.misuse import UnitMisuse
from kernelpack.emulator.events import Bus, Misuse
from kernelpack.emulator.faults import Level
from tests.emulator.kernel import launch

COPY = "mov.u32 %r1, s; setp.eq.u32 %p1, %thread, 3; mad.lo.u32 %r2, %lane, 4, %r1; st.shared.b32 [%r2], %lane; fence.proxy.async; bar.sync 0;"
WHO = [
    ("bounds", "setp.eq.u32 %p1, %thread, 7; @%p1 st.global.b32 [%mine+1000000], %thread;", 7),
    ("bounds", "setp.eq.u32 %p1, %thread, 7; @%p1 ld.global.b32 %r1, [%mine+1000000];", 7),
    ("bounds", "setp.eq.u32 %p1, %thread, 7; @%p1 atom.global.add.u32 %r1, [%mine+1000000], 1;", 7),
    ("bounds", "setp.eq.u32 %p1, %thread, 7; @%p1 red.global.add.u32 [%mine+4000000], 1;", 7),
    ("bounds", "setp.ge.u32 %p1, %thread, 16; selp.b32 %r2, 1, 0, %p1; setp.eq.u32 %p2, %thread, 20; selp.b32 %r2, %r2, 0, %p2; mad.wide.u32 %rd1, %r2, 900000, %mine; @%p1 st.global.b32 [%rd1], %thread;", 20),
    ("bounds", "setp.ge.u32 %p1, %thread, 5; @!%p1 bra Z; mov.b32 %r9, 1; Z: @%p1 bra Y; bra X; Y: st.global.b32 [%mine+1000000], %r9; X:", 5),
    ("bounds", "setp.eq.u32 %p1, %thread, 9; mov.u32 %r1, s; @%p1 st.b32 [%mine+1000000], %thread;", 9),
    ("bounds", "setp.ge.u32 %p1, %lane, 11; @%p1 st.local.b32 [4096], %thread;", 11),
    ("misaligned", "setp.eq.u32 %p1, %thread, 13; selp.b32 %r2, 2, 0, %p1; cvt.u64.u32 %rd1, %r2; add.u64 %rd1, %rd1, %mine; setp.ge.u32 %p2, %thread, 8; @%p2 st.global.b32 [%rd1], %thread;", 13),
    ("misaligned", "setp.eq.u32 %p1, %thread, 13; selp.b32 %r2, 8, 0, %p1; cvt.u64.u32 %rd1, %r2; add.u64 %rd1, %rd1, %in; setp.ge.u32 %p2, %thread, 8; @%p2 ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd1];", 13),
    ("misaligned", "mov.u32 %r1, s; setp.eq.u32 %p1, %thread, 6; selp.b32 %r2, 4, 0, %p1; add.u32 %r1, %r1, %r2; setp.ge.u32 %p2, %thread, 3; @%p2 cp.async.ca.shared.global [%r1], [%in], 8;", 6),
    ("uninitialised", "mov.u32 %r1, s; setp.eq.u32 %p1, %thread, 9; @%p1 ld.shared.b32 %r3, [%r1+64];", 9),
    ("uninitialised", "mov.u32 %r1, s; setp.lt.u32 %p1, %lane, 21; mad.lo.u32 %r2, %lane, 4, %r1; @%p1 st.shared.b32 [%r2], 1; bar.sync 0; setp.ge.u32 %p2, %lane, 4; @%p2 ld.shared.b32 %r3, [%r2];", 21),
    ("uninitialised", f"{COPY} @%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 256; @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;", None),
    ("bounds", f"{COPY} @%p1 cp.async.bulk.global.shared::cta.bulk_group [%out+16320], [%r1], 128; @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;", None),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "body", "lane"), WHO)
def test_the_first_lane_at_fault_is_named(rule: str, body: str, lane: int | None):
    """Under a mask or a guard too; of a copy, whose bytes are of no lane, none is."""
    result, _ = launch(body)
    assert [(rule, lane)] == [(finding.rule.name, finding.lane) for finding in result.findings]


def test_a_rule_is_cited_with_its_section():
    """One name may be in several sections, at several levels."""
    told = []
    bus = Bus()
    UnitMisuse(lambda rule, *_: told.append((rule.level, rule.section))).listen(bus)
    rows = [rules.OPERANDS_DIFFER, rules.SCALES_DIFFER, rules.OPERANDS_DIFFER]
    for row in rows:
        bus.emit(Misuse(row, "differ"))
    assert told == [(Level.STRICT, "9.7.16.10.5"), (Level.ERROR, "9.7.16.10.7"), told[0]]


@pytest.mark.parametrize(
    ("body", "level", "found"),
    [
        ("@%p0 st.global.b32 [%out], 1;\n @!%p0 ld.global.b32 %r1, [%out];", Level.WARN, "warp 0 of cta (0, 0, 0) wrote at ptx:22, with"),
        ("@%p0 ld.global.b32 %r1, [%out];\n @!%p0 st.global.b32 [%out], 1;", Level.WARN, "warp 0 of cta (0, 0, 0) read at ptx:22, with"),
        ("@%p0 st.shared.b32 [%r9], 1; bar.sync 0; @!%p0 ld.shared.b32 %r2, [%r9];\n @%p0 st.shared.b32 [%r9], 2;", Level.WARN, "warp 1 of cta (0, 0, 0) read at ptx:22, with"),
        ("@%p0 st.global.b32 [%mine], 1; xor.b32 %r1, %lane, 1; mad.wide.u32 %rd1, %r1, 4, %out;\n @%p0 ld.global.b32 %r2, [%rd1];", Level.STRICT, "wrote at ptx:22 since they met"),
    ],
)  # fmt: skip
def test_both_places_of_a_race(body: str, level: Level, found: str):
    """The finding is at one of them, and names the other one with what was done there."""
    body = f"mov.u32 %r9, s; setp.eq.u32 %p0, %warp, 0; {body}"
    result, _ = launch(body, threads=64, level=level)
    assert any(found in f.message and f.place == "ptx:23" for f in result.findings), result


def test_a_vector_is_told_whole():
    """Its size is what the address is not a multiple of."""
    result, _ = launch(
        "setp.eq.u32 %p1, %thread, 2; @%p1 st.global.v4.b32 [%out+8], {%r1, %r1, %r1, %r1};"
    )
    (finding,) = result.findings
    assert finding.message.startswith("misaligned write of 16 bytes to global at 0x")
    assert (finding.lane, finding.count) == (2, 1)
