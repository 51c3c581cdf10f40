# ruff: noqa: E501  (bodies of kernels: one a line)
"""Values of a vector load that nobody reads: compilers widen loads over words that are not theirs."""

import pytest

from tests.emulator.kernel import launch, rules

WRITE = "mov.u32 %r0, s; mad.lo.u32 %r1, %lane, 16, %r0; st.shared.b32 [%r1+4], %lane; bar.warp.sync -1;"
LOAD = "ld.shared{how}.v4.b32 {{%r2, %r3, %r4, %r5}}, [%r1];"
USE = "st.global.b32 [%mine], %r3;"


@pytest.mark.parametrize(
    ("load", "use", "found"),
    [
        (LOAD.format(how=""), USE, set()),
        (LOAD.format(how=""), USE + "st.global.b32 [%mine+128], %r5;", {"uninitialised"}),
        (LOAD.format(how=".volatile"), USE, {"uninitialised"}),
        ("ld.shared.v4.b32 {_, %r3, _, _}, [%r1];", USE, set()),
        (LOAD.format(how=""), "", {"uninitialised"}),
    ],
    ids=["one is read", "another one too", "volatile", "written as dropped", "none is read"],
)
def test_words_that_were_never_written(load: str, use: str, found: set[str]):
    """They count where their value is read, and where the load is not weak."""
    result, out = launch(f"{WRITE} {load} {use}")
    assert rules(result) == found
    assert out[:32].tolist() == (list(range(32)) if use else [0] * 32)


@pytest.mark.parametrize(("used", "found"), [("%r3", set()), ("%r2", {"race"})])
def test_words_that_another_warp_writes(used: str, found: set[str]):
    """A word beside the one that is wanted is another warp's."""
    body = f"""mov.u32 %r0, s; mad.lo.u32 %r1, %lane, 16, %r0; setp.eq.u32 %p0, %warp, 0;
      @%p0 st.shared.v4.b32 [%r1], {{%lane, %lane, %lane, %lane}}; bar.sync 0; @%p0 st.shared.b32 [%r1], 7;
      @%p0 bra Z; ld.shared.v4.b32 {{%r2, %r3, %r4, %r5}}, [%r1]; st.global.b32 [%mine], {used}; Z:"""
    assert rules(launch(body, threads=64, schedule="eager")[0]) == found


def test_the_vector_is_aligned_as_a_whole():
    """A GPU loads all of it."""
    body = f"{WRITE} st.shared.b32 [%r1+8], %lane; bar.warp.sync -1; add.u32 %r1, %r1, 4; ld.shared.v2.b32 {{%r3, %r4}}, [%r1]; {USE}"
    assert rules(launch(body)[0]) == {"misaligned"}
