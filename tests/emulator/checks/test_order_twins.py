# ruff: noqa: E501  (tables of programs: one a line)
"""Twins of data behind a flag: release and acquire, fences, scopes (PTX ISA 8.8, 8.5)."""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.checks.twins import Twins, broken
from tests.emulator.kernel import launch, rules

BLOCKS = """
  mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; setp.eq.u32 %p0, %thread, 0; and.pred %p2, %p0, %p1;
  @%p1 bra READ;
"""
WARPS = """
  setp.ne.u32 %p1, %warp, 0; setp.eq.u32 %p0, %lane, 0; and.pred %p2, %p0, %p1;
  @%p1 bra READ;
"""
DATA = "st.global.b32 [%out], 7;"
FLAG = "[%out+64]"
RELAXED = f"st.relaxed.gpu.global.b32 {FLAG}, 1;"
VOLATILE = f"st.volatile.global.b32 {FLAG}, 1;"
READ = "bra Z; READ:"
SEEN = "setp.eq.u32 %p3, %r2, 0; @%p3 bra L; ld.global.b32 %r3, [%out]; st.global.b32 [%out+128], %r3; Z:"
ACQUIRE = f"L: ld.acquire.gpu.global.b32 %r2, {FLAG};"
FENCES = {scope: f"fence.acq_rel.{scope};" for scope in ("cta", "cluster", "gpu", "sys")}


def sent(how: str, *, got: str = ACQUIRE, who: str = BLOCKS, after: str = "") -> str:
    """One thread stores the data, sets a flag, and another one sees the flag and reads the data."""
    return f"{who} @!%p0 bra Z; {DATA} {how} {READ} @!%p2 bra Z; {got} {SEEN.replace('ld.global', f'{after} ld.global', 1)}"


TWO = {"grid": 2}
WRITERS = [
    Twins("race", sent(f"§ {RELAXED}"), "", FENCES["gpu"], **TWO),
    Twins("race", sent(f"§ {VOLATILE}"), "", "membar.gl;", **TWO),
    Twins("race", sent(f"§ {VOLATILE}"), "", "membar.sys;", **TWO),
    Twins("race", sent(f"§ red.relaxed.gpu.global.add.u32 {FLAG}, 1;"), "", FENCES["gpu"], **TWO),
    Twins("race", sent("§"), f"red.global.add.u32 {FLAG}, 1;", f"red.release.gpu.global.add.u32 {FLAG}, 1;", **TWO),
    Twins("race", sent("§"), f"atom.global.exch.b32 %r4, {FLAG}, 1;", f"atom.acq_rel.gpu.global.exch.b32 %r4, {FLAG}, 1;", **TWO),
    Twins("race", sent("§"), f"atom.acquire.gpu.global.exch.b32 %r4, {FLAG}, 1;", f"atom.release.gpu.global.exch.b32 %r4, {FLAG}, 1;", **TWO),
    Twins("race", sent(f"§ {RELAXED}"), f"{FENCES['gpu']} {DATA}", f"{DATA} {FENCES['gpu']}", **TWO),
    Twins("race", sent(f"§ {RELAXED}", who=WARPS), "", FENCES["cta"], threads=64),
    # a fence that reaches one block alone
    Twins("memory-order", sent(f"§ {RELAXED}"), FENCES["cta"], FENCES["gpu"], **TWO),
    Twins("memory-order", sent(f"§ {RELAXED}"), FENCES["cluster"], FENCES["sys"], **TWO),
    Twins("memory-order", sent("§"), f"st.release.cta.global.b32 {FLAG}, 1;", f"st.release.gpu.global.b32 {FLAG}, 1;", **TWO),
    Twins("memory-order", sent(f"§ {RELAXED}"), FENCES["cta"], FENCES["cluster"], grid=2, cluster=2),
]  # fmt: skip
RELEASE = f"st.release.gpu.global.b32 {FLAG}, 1;"
READERS = [
    Twins("memory-order", sent(RELEASE, got="§"), f"L: ld.relaxed.gpu.global.b32 %r2, {FLAG};", ACQUIRE, **TWO),
    Twins("memory-order", sent(RELEASE, got="§"), f"L: ld.volatile.global.b32 %r2, {FLAG};", ACQUIRE, **TWO),
    Twins("memory-order", sent(RELEASE, got="§"), f"L: ld.acquire.cta.global.b32 %r2, {FLAG};", ACQUIRE, **TWO),
    Twins("memory-order", sent(RELEASE, got=f"L: ld.volatile.global.b32 %r2, {FLAG};", after="§"), FENCES["cta"], FENCES["gpu"], **TWO),
    Twins("memory-order", sent(RELEASE, got=f"L: ld.relaxed.gpu.global.b32 %r2, {FLAG};", after="§"), "fence.release.gpu;", "fence.acquire.gpu;", **TWO),
]  # fmt: skip

LAST = f"""
  mov.u32 %r1, %ctaid.x; mad.lo.u32 %r5, %r1, 64, %thread; mul.wide.u32 %rd1, %r5, 4; add.u64 %rd1, %rd1, %out;
  st.global.b32 [%rd1+1024], 5; § bar.sync 0;
  mov.u32 %r6, s; setp.eq.u32 %p0, %thread, 0; @!%p0 bra M;
  atom.global.add.u32 %r2, {FLAG}, 1; st.shared.b32 [%r6], %r2;
M: bar.sync 0; ld.shared.b32 %r2, [%r6]; setp.ne.u32 %p1, %r2, 1; @%p1 bra Z;
  mad.wide.u32 %rd2, %thread, 4, %out; ld.global.b32 %r3, [%rd2+1024]; ld.global.b32 %r4, [%rd2+1280];
  add.u32 %r3, %r3, %r4; st.global.b32 [%mine+2048], %r3; Z:
"""
LOCK = f"""
  setp.eq.u32 %p0, %thread, 0; @!%p0 bra Z;
L: atom.global.cas.b32 %r1, {FLAG}, 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
  ld.global.b32 %r2, [%out]; add.u32 %r2, %r2, 1; st.global.b32 [%out], %r2;
  § atom.global.exch.b32 %r1, {FLAG}, 0; Z:
"""
EACH = """
  mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; mad.wide.u32 %rd1, %thread, 4, %out; @%p1 bra READ;
  st.global.b32 [%rd1], %thread; § st.relaxed.gpu.global.b32 [%rd1+256], 1; bra Z;
READ: mov.u32 %r2, 0;
L: ld.acquire.gpu.global.b32 %r2, [%rd1+256]; setp.eq.u32 %p3, %r2, 0; @%p3 bra L; ld.global.b32 %r3, [%rd1]; Z:
"""
SHARED = """
  mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0; @%p0 st.shared.b32 [%r1+64], 0; bar.sync 0;
  setp.ne.u32 %p1, %warp, 0; @%p1 bra READ; @!%p0 bra Z;
  st.shared.b32 [%r1], 7; § st.volatile.shared.b32 [%r1+64], 1; bra Z;
READ: setp.ne.u32 %p2, %lane, 0; @%p2 bra Z;
L: ld.volatile.shared.b32 %r2, [%r1+64]; setp.eq.u32 %p3, %r2, 0; @%p3 bra L; fence.acq_rel.cta; ld.shared.b32 %r3, [%r1]; Z:
"""
WHOLE = [
    # the last block adds up what the others stored, as in the CUDA programming guide
    Twins("race", LAST, "", "membar.gl;", threads=64, grid=2),
    Twins("race", LAST, "", FENCES["gpu"], threads=64, grid=2),
    Twins("memory-order", LAST, "membar.cta;", "membar.gl;", threads=64, grid=2),
    Twins("race", LOCK, "", FENCES["gpu"], grid=3),
    Twins("race", EACH, "", FENCES["gpu"], grid=2),
    Twins("memory-order", SHARED, "", FENCES["cta"], threads=64),
]  # fmt: skip

TWINS = [*WRITERS, *READERS, *WHOLE]


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: t.rule)
def test_the_bad_twin_is_caught(twins: Twins):
    """The rule is named when it is broken."""
    assert twins.rule in broken(twins, twins.bad)


@pytest.mark.parametrize("twins", TWINS, ids=lambda t: t.rule)
def test_the_good_twin_is_not(twins: Twins):
    """Nothing at all is found when it is kept."""
    assert broken(twins, twins.good) == set()


@pytest.mark.parametrize(
    ("how", "got", "who", "missing"),
    [
        (RELAXED, ACQUIRE, BLOCKS, "no fence between that and the relaxed store or atomic that p"),
        (RELEASE, ACQUIRE.replace("gpu", "cta"), BLOCKS, "the wait has the scope of a CTA"),
        (RELEASE, ACQUIRE.replace("acquire", "relaxed"), BLOCKS, "no fence after the relaxed"),
        (FENCES["cta"] + RELAXED, ACQUIRE, BLOCKS, "store or fence has the scope of a CTA"),
    ],
    ids=["no fence before", "a narrow acquire", "no fence after", "a narrow fence"],
)
def test_what_is_missing(how: str, got: str, who: str, missing: str):
    """A finding says which fence lacks, or that a scope does not reach."""
    result, _ = launch(sent(how, got=got, who=who), grid=2)
    assert any(missing in finding.message for finding in result.findings)


def test_data_that_are_strong_themselves():
    """What is stored and read by relaxed operations needs no order."""
    data = DATA.replace("st.", "st.relaxed.gpu.")
    body = f"{BLOCKS} @!%p0 bra Z; {data} {READ} @!%p2 bra Z; ld.relaxed.gpu.global.b32 %r3, [%out]; Z:"
    result, _ = launch(body, grid=2)
    assert rules(result) == set()


@pytest.mark.parametrize(
    ("how", "found"), [("", {"race", "memory-order"}), (".relaxed.gpu", set())]
)
def test_a_guess_before_a_compare_and_swap(how: str, found: set[str]):
    """A plain read of what others swap is a warning: the CUDA guide's atomicMax has one."""
    body = f"ld{how}.global.b32 %r1, [%out]; L: max.u32 %r2, %r1, %thread; atom.global.cas.b32 %r3, [%out], %r1, %r2; setp.ne.u32 %p1, %r3, %r1; mov.b32 %r1, %r3; @%p1 bra L;"
    result, out = launch(body, threads=64)
    assert (rules(result), out[0]) == (found, 63)
    assert {finding.rule.level for finding in result.findings} <= {Level.WARN}
