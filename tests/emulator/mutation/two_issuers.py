"""The GEMM with two warps that multiply, 5 and 6: each the products of half of the columns of D."""
# ruff: noqa: E501  (PTX is as a compiler would write it)

from tests.emulator.mutation.gemm import GEMM, IDESC

THREADS = 224
SCHEDULES = ("eager", "lazy", "starving:0:4", "starving:0:5", "starving:0:6")
_HALF = IDESC - (64 // 8 << 17) + (32 // 8 << 17)
_CHANGES = (
    (
        "[%empty], 1; mbarrier.init.shared.b64 [%empty+8], 1;",
        "[%empty], 2; mbarrier.init.shared.b64 [%empty+8], 2;",
    ),
    ("[%done], 1;", "[%done], 2;"),
    (
        "setp.eq.u32 %p2, %warp, 5; @%p2 bra MULTIPLY;",
        "setp.ge.u32 %p2, %warp, 5; @%p2 bra MULTIPLY;",
    ),
    (
        "shr.u32 %r3, %r3, 4; shr.u32 %r4, %r4, 4;",
        "sub.u32 %r7, %warp, 5; mad.lo.u32 %r4, %r7, 4096, %r4; mad.lo.u32 %r8, %r7, 32, %tm; shr.u32 %r3, %r3, 4; shr.u32 %r4, %r4, 4;",
    ),
    (f"mov.u32 %r5, {IDESC};", f"mov.u32 %r5, {_HALF};"),
    ("kind::f16 [%tm],", "kind::f16 [%r8],"),
)


def _changed(text: str) -> str:
    for old, new in _CHANGES:
        assert old in text, old
        text = text.replace(old, new)
    return text


TWO = _changed(GEMM)


def of_warp(warp: int, line: str, label: str) -> str:
    """A line that one of the two leaves out."""
    return f"setp.eq.u32 %p3, %warp, {warp}; @%p3 bra {label}; {line} {label}:"
