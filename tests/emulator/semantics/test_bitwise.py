# ruff: noqa: E501  (a table of programs: one a line)
"""Logic, shifts and byte permutation."""

import pytest

from tests.emulator.semantics.bench import Case, case, check

M32 = 0xFFFF_FFFF
A, B, C = 0xF0F0_F0F0, 0xCCCC_CCCC, 0xAAAA_AAAA
BYTES = {"a": ("b32", [0x3322_1100]), "b": ("b32", [0x7766_5584])}

CASES = [
    case("and.b32 %d, %a, %b;", "b32", [A & B], a=("b32", A), b=("b32", B)),
    case("or.b64 %d, %a, %b;", "b64", [A | B], a=("b64", A), b=("b64", B)),
    case("xor.b16 %d, %a, %b;", "b16", [0x3C3C], a=("b16", A), b=("b16", B)),
    case("and.pred %d, %a, %b;", "pred", [1, 0], a=("pred", [1, 1]), b=("pred", [1, 0])),
    case("or.pred %d, %a, %b;", "pred", [1, 0], a=("pred", [1, 0]), b=("pred", [0, 0])),
    case("xor.pred %d, %a, %b;", "pred", [0, 1], a=("pred", [1, 1]), b=("pred", [1, 0])),
    case("not.b32 %d, %a;", "b32", [~A], a=("b32", A)),
    case("not.pred %d, %a;", "pred", [0, 1], a=("pred", [1, 0])),
    case("cnot.b32 %d, %a;", "b32", [1, 0], a=("b32", [0, 7])),
    *[
        case(f"lop3.b32 %d, %a, %b, %c, {table};", "b32", [expected], a=("b32", A), b=("b32", B), c=("b32", C))
        for table, expected in [
            (0x80, A & B & C), (0xFE, A | B | C), (0x96, A ^ B ^ C), (0xEA, A & B | C),
            (0xF8, B & C | A), (0x78, A ^ (B & C)), (0xC8, (A | C) & B), (0xE0, (B | C) & A),
            (0xA8, (A | B) & C), (0x6A, (A & B) ^ C), (0x1B, ~A & ~B & C | ~A & ~B & ~C | ~A & B & C | A & ~B & ~C),
            (0x00, 0), (0xFF, M32),
        ]
    ],
    case("shl.b32 %d, %a, %b;", "b32", [8, 0, 0], a=("b32", [1]), b=("u32", [3, 32, 99])),
    case("shl.b64 %d, %a, 40;", "b64", [1 << 40], a=("b64", [1])),
    case("shl.b16 %d, %a, 15;", "b16", [0x8000], a=("b16", [3])),
    case("shr.s32 %d, %a, %b;", "s32", [-1, -1, 4], a=("s32", [-(2**31), -(2**31), 8]), b=("u32", [31, 40, 1])),
    case("shr.u32 %d, %a, %b;", "u32", [1, 0], a=("u32", [2**31]), b=("u32", [31, 40])),
    case("shr.b16 %d, %a, 8;", "b16", [0x80], a=("b16", [0x8000])),
    case("shf.l.wrap.b32 %d, %a, %b, %c;", "b32", [0x2345_6789, 0x1234_5678], a=("b32", [0x9ABC_DEF0]), b=("b32", [0x1234_5678]), c=("u32", [4, 32])),
    case("shf.r.wrap.b32 %d, %a, %b, %c;", "b32", [0x89AB_CDEF], a=("b32", [0x9ABC_DEF0]), b=("b32", [0x1234_5678]), c=("u32", [4])),
    case("shf.r.clamp.b32 %d, %a, %b, 40;", "b32", [0x1234_5678], a=("b32", [1]), b=("b32", [0x1234_5678])),
    case("shf.l.clamp.b32 %d, %a, %b, 40;", "b32", [1], a=("b32", [1]), b=("b32", [0x1234_5678])),
    case("prmt.b32 %d, %a, %b, 0x5410;", "b32", [0x5584_1100], **BYTES),
    case("prmt.b32 %d, %a, %b, 0x7632;", "b32", [0x7766_3322], **BYTES),
    case("prmt.b32 %d, %a, %b, 0xC00C;", "b32", [0xFF00_00FF], **BYTES),
    case("prmt.b32.f4e %d, %a, %b, 1;", "b32", [0x8433_2211], **BYTES),
    case("prmt.b32.b4e %d, %a, %b, 1;", "b32", [0x6677_0011], **BYTES),
    case("prmt.b32.rc8 %d, %a, %b, 2;", "b32", [0x2222_2222], **BYTES),
    case("prmt.b32.ecl %d, %a, %b, 2;", "b32", [0x3322_2222], **BYTES),
    case("prmt.b32.ecr %d, %a, %b, 1;", "b32", [0x1111_1100], **BYTES),
    case("prmt.b32.rc16 %d, %a, %b, 1;", "b32", [0x3322_3322], **BYTES),
]  # fmt: skip


@pytest.mark.parametrize("one", CASES)
def test_bitwise(one: Case):
    """A logic, shift or permute instruction gives what the manual says."""
    check(one)
